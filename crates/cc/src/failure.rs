//! The failure of a controller: who, in which callback, and how.

use std::fmt;

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
        Self { controller: ShortName::new(if name.is_empty() { "unnamed" } else { name }), fault }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Nonsense {
    /// The field of [`Control`](crate::Control).
    pub setting: &'static str,
    /// The kind of its value.
    pub value: NonsenseValue,
}

/// A value that no connection can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NonsenseValue {
    /// Not a number.
    NotANumber,
    /// Infinite.
    Infinite,
    /// Below zero.
    Negative,
    /// Zero, where that would stop the connection.
    Zero,
    /// A time of more than a minute, in which the connection would not send.
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

impl fmt::Display for Nonsense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = match self.value {
            NonsenseValue::NotANumber => "NaN",
            NonsenseValue::Infinite => "an infinite value",
            NonsenseValue::Negative => "a value below zero",
            NonsenseValue::Zero => "zero",
            NonsenseValue::TooLong => "more than 60 s",
        };
        write!(f, "{} to {value}", self.setting)
    }
}

/// A name of at most 40 bytes, held in place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ShortName {
    bytes: [u8; NAME_BYTES],
    len: u8,
}

impl ShortName {
    /// As much of `name` as fits.
    pub fn new(name: &str) -> Self {
        let mut len = name.len().min(NAME_BYTES);
        while !name.is_char_boundary(len) {
            len -= 1;
        }
        let mut bytes = [0; NAME_BYTES];
        bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
        Self { bytes, len: len as u8 }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl fmt::Display for ShortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for ShortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_between_characters() {
        assert_eq!(ShortName::new("aimd").as_str(), "aimd");
        let long = "ä".repeat(30);
        assert_eq!(ShortName::new(&long).as_str(), "ä".repeat(20));
        assert_eq!(ShortName::new(&format!("a{long}")).as_str(), format!("a{}", "ä".repeat(19)));
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
