//! What the command, C and Python use of this crate, beside its public face. Unstable: it changes with them.

pub use farhaul_bond::{self as bond, Threads};
pub use farhaul_keys::{self as keys, lists};

pub use crate::error::{Trouble, code_of};
pub use crate::limit::Limit;
pub use crate::location::{HostPort, OriginalPlace, Scheme, ServerPlace, SshPlace, What};
pub use crate::throttle::{Capped, ThrottleError};

/// Each module under its name.
macro_rules! modules {
    ($($name:ident)*) => {
        $(pub mod $name {
            pub use crate::$name::*;
        })*
    };
}

modules! { admission bootstrap connect control event limit manifest_file quota remote report rsh serve session settings text }
