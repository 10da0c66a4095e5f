//! Enums with a row of constants for each variant. A variant that is added cannot be missing in the list of all, or lack
//! its row.

/// Declares an enum, `ALL`, its variants in the order of the declaration, and `entry`, the row of a variant.
macro_rules! listed_enum {
    (
        $(#[$of_enum:meta])*
        pub enum $name:ident: $entry:ty { $($(#[$of_variant:meta])* $variant:ident = $row:expr,)+ }
    ) => {
        $(#[$of_enum])*
        pub enum $name {
            $($(#[$of_variant])* $variant,)+
        }

        impl $name {
            /// All of them, in the order of the declaration.
            pub const ALL: [Self; [$(Self::$variant),+].len()] = [$(Self::$variant),+];

            const fn entry(self) -> $entry {
                match self { $(Self::$variant => $row,)+ }
            }
        }
    };
}

pub(crate) use listed_enum;
