//! Why a control record of a blast protocol was refused.

use farhaul_units::SeqNo;

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

/// A number of a record, whose top bit must be zero.
pub(crate) fn seq_of_record(field: &'static str, bytes: [u8; 4]) -> Result<SeqNo, RecordError> {
    let value = u32::from_be_bytes(bytes);
    if value > SeqNo::MAX.value() {
        return Err(RecordError::OutOfRange { field, value: value.into(), valid: "0 to 2^31 - 1" });
    }
    Ok(SeqNo::new(value))
}
