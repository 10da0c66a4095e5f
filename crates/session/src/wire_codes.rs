//! Enums of codes that travel as numbers, and of which later versions may have more.

/// Declares an enum with a row for each code: its number on the wire, its words, its description. `$other` names a number
/// without a row in words.
macro_rules! wire_codes {
    (
        $(#[$of_enum:meta])*
        pub enum $enum:ident, $other:literal;
        $($name:ident = $number:literal, $text:literal, $doc:literal;)*
    ) => {
        $(#[$of_enum])*
        #[non_exhaustive]
        pub enum $enum {
            $(#[doc = $doc] $name,)*
            /// A code of a later version.
            Other(u16),
        }

        impl $enum {
            /// The number on the wire.
            pub const fn to_wire(self) -> u16 {
                match self { $(Self::$name => $number,)* Self::Other(code) => code }
            }

            /// The code with this number.
            pub const fn from_wire(code: u16) -> Self {
                match code { $($number => Self::$name,)* other => Self::Other(other) }
            }
        }

        impl std::fmt::Display for $enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$name => f.write_str($text),)*
                    Self::Other(code) => write!(f, concat!($other, " {}"), code),
                }
            }
        }
    };
}

pub(crate) use wire_codes;
