//! Enums that list their variants: a variant that is added cannot be missing in the list.

/// Declares an enum, and `ALL`, its variants in the order of the declaration.
macro_rules! listed_enum {
    ($(#[$of_enum:meta])* pub enum $name:ident { $($(#[$of_variant:meta])* $variant:ident,)+ }) => {
        $(#[$of_enum])*
        pub enum $name {
            $($(#[$of_variant])* $variant,)+
        }

        impl $name {
            /// All of them, in the order of the declaration.
            pub const ALL: [Self; [$(Self::$variant),+].len()] = [$(Self::$variant),+];
        }
    };
}

pub(crate) use listed_enum;
