//! The failure of a controller: who, in which callback, and how.

use arrayvec::ArrayString;

/// Bytes of a controller's name in a failure. A longer one is cut.
const NAME_BYTES: usize = 40;

/// A controller has failed. The transport ends its connection, and calls the controller no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the congestion controller '{controller}' failed: {fault}")]
#[non_exhaustive]
pub struct ControllerFailure {
    /// Its name, with its options.
    pub controller: ShortName,
    /// How it failed.
    pub fault: ControllerFault,
}

impl ControllerFailure {
    /// A fault of the controller `name`.
    pub fn new(name: &str, fault: ControllerFault) -> Self {
        Self { controller: shortened(if name.is_empty() { "unnamed" } else { name }), fault }
    }
}

/// How a controller failed. The first text is the callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControllerFault {
    /// It panicked. The message of the panic is on stderr.
    #[error("it panicked in {0}")]
    Panicked(&'static str),
    /// It set something to a value that no connection can use.
    #[error("{0} set {1}")]
    Answered(&'static str, Nonsense),
}

/// A setting with a value that no connection can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting} to {value}")]
#[non_exhaustive]
pub struct Nonsense {
    /// The field of [`Control`](crate::Control).
    pub setting: &'static str,
    /// The kind of its value.
    pub value: NonsenseValue,
}

/// A value that no connection can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NonsenseValue {
    /// Not a number.
    #[error("NaN")]
    NotANumber,
    /// Infinite.
    #[error("an infinite value")]
    Infinite,
    /// Below zero.
    #[error("a value below zero")]
    Negative,
    /// Zero, where that would stop the connection.
    #[error("zero")]
    Zero,
    /// A time of more than a minute, in which the connection would not send.
    #[error("more than 60 s")]
    TooLong,
}

impl Nonsense {
    /// The setting has this number, which is not usable.
    pub(crate) fn number(setting: &'static str, value: f64) -> Self {
        let value = match value {
            value if value.is_nan() => NonsenseValue::NotANumber,
            value if value.is_infinite() => NonsenseValue::Infinite,
            value if value < 0.0 => NonsenseValue::Negative,
            0.0 => NonsenseValue::Zero,
            _ => NonsenseValue::TooLong,
        };
        Self { setting, value }
    }

    /// The setting has a time that is too long.
    pub(crate) const fn too_long(setting: &'static str) -> Self {
        Self { setting, value: NonsenseValue::TooLong }
    }
}

/// A name of at most 40 bytes, held in place.
pub type ShortName = ArrayString<NAME_BYTES>;

/// As much of `name` as fits.
fn shortened(name: &str) -> ShortName {
    let fits = |length: &usize| name.is_char_boundary(*length);
    let length = (0..=name.len().min(NAME_BYTES)).rev().find(fits).unwrap_or(0);
    ShortName::from(&name[..length]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_between_characters() {
        assert_eq!(shortened("aimd").as_str(), "aimd");
        let long = "ä".repeat(30);
        assert_eq!(shortened(&long).as_str(), "ä".repeat(20));
        assert_eq!(shortened(&format!("a{long}")).as_str(), format!("a{}", "ä".repeat(19)));
    }

    #[test]
    fn a_failure_names_the_controller_the_callback_and_the_value() {
        let fault = ControllerFault::Answered("on_ack", Nonsense::number("cwnd", f64::NAN));
        let failure = ControllerFailure::new("aimd", fault);
        assert_eq!(failure.to_string(), "the congestion controller 'aimd' failed: on_ack set cwnd to NaN");
        let failure = ControllerFailure::new("", ControllerFault::Panicked("on_loss"));
        assert_eq!(failure.to_string(), "the congestion controller 'unnamed' failed: it panicked in on_loss");
    }
}
