//! Why a control record of a blast protocol was refused.

/// A record that no program of its protocol sends. The records that follow it cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// No record has this type.
    #[error("no record has the type {0}")]
    UnknownType(u8),
    /// A value that its field never has.
    #[error("{field} is {value}, valid is {valid}")]
    OutOfRange {
        /// The name of the field.
        field: &'static str,
        /// The value on the wire.
        value: u64,
        /// The valid values, in words.
        valid: &'static str,
    },
}
