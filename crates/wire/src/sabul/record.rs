//! Control records, from the receiver of the data to its sender.

use super::seq::DecimalSeq;

/// Most losses of one record. A packet of the original has room for them behind its two words.
pub const MAX_LOSSES: usize = 366;
/// Bytes of the longest record.
pub const MAX_RECORD: usize = HEAD + WORD * MAX_LOSSES;

const WORD: usize = 4;
/// Bytes of a record before its losses: type and attribute.
const HEAD: usize = 2 * WORD;

mod kind {
    pub(super) const ACK: u32 = 1;
    pub(super) const ERR: u32 = 2;
    pub(super) const EXP: u32 = 3;
    pub(super) const SYN: u32 = 4;
    pub(super) const MORE: u32 = 5;
}

/// A control record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// All packets before this one arrived.
    Ack(DecimalSeq),
    /// These packets are missing.
    Err(Losses<'a>),
    /// Everything unacknowledged counts as lost. No program sends it. Its attribute has no meaning.
    Exp(u32),
    /// Packets that arrived since the last record of this type.
    Syn(u32),
    /// Ours: these packets are missing too. The record continues the last [`Err`](Self::Err).
    More(Losses<'a>),
}

impl<'a> Record<'a> {
    /// Reads one from the front of `bytes`. Returns it with its length, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// No record begins with these bytes. Nothing that follows can be read then.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, RecordError> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else { return Ok(None) };
        let [kind, attribute] =
            [0, WORD].map(|at| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
        let record = match kind {
            kind::ACK => Self::Ack(DecimalSeq::new(attribute).ok_or(RecordError::Number(attribute))?),
            kind::ERR | kind::MORE => {
                let Some(losses) = Losses::split(attribute, rest)? else { return Ok(None) };
                let length = HEAD + losses.0.len();
                return Ok(Some((if kind == kind::ERR { Self::Err(losses) } else { Self::More(losses) }, length)));
            }
            kind::EXP => Self::Exp(attribute),
            kind::SYN => Self::Syn(attribute),
            _ => return Err(RecordError::Kind(kind)),
        };
        Ok(Some((record, HEAD)))
    }

    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ack(seq) => put(out, kind::ACK, seq.value()),
            Self::Exp(attribute) => put(out, kind::EXP, *attribute),
            Self::Syn(packets) => put(out, kind::SYN, *packets),
            Self::Err(losses) | Self::More(losses) => {
                let kind = if matches!(self, Self::Err(_)) { kind::ERR } else { kind::MORE };
                put(out, kind, word(losses.count()));
                out.extend_from_slice(losses.0);
            }
        }
    }
}

/// The losses of a record: 1 to 366 valid numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Losses<'a>(&'a [u8]);

impl<'a> Losses<'a> {
    /// Takes `count` losses from the front of `rest`; `None` if more bytes are needed. A count is judged before the
    /// bytes are there, so a peer's claim takes no memory.
    fn split(count: u32, rest: &'a [u8]) -> Result<Option<Self>, RecordError> {
        let length = usize::try_from(count).ok().filter(|length| (1..=MAX_LOSSES).contains(length));
        let Some(body) = rest.get(..length.ok_or(RecordError::Count(count))? * WORD) else { return Ok(None) };
        match words(body).find(|&value| DecimalSeq::new(value).is_none()) {
            Some(value) => Err(RecordError::Number(value)),
            None => Ok(Some(Self(body))),
        }
    }

    /// How many there are, at least one.
    pub const fn count(&self) -> usize {
        self.0.len() / WORD
    }

    /// The first one.
    pub fn first(&self) -> DecimalSeq {
        self.iter().next().unwrap_or_default()
    }

    /// All of them, in the order of the record.
    pub fn iter(&self) -> impl Iterator<Item = DecimalSeq> + use<'a> {
        words(self.0).filter_map(DecimalSeq::new)
    }
}

/// Appends a record of the first losses, at most [`MAX_LOSSES`]: an [`Record::Err`], or a [`Record::More`] if it
/// `continues` one. Returns how many it took. Without losses nothing is appended.
pub fn encode_losses(losses: impl Iterator<Item = DecimalSeq>, continues: bool, out: &mut Vec<u8>) -> usize {
    let at = out.len();
    put(out, if continues { kind::MORE } else { kind::ERR }, 0);
    for loss in losses.take(MAX_LOSSES) {
        out.extend_from_slice(&loss.value().to_be_bytes());
    }
    let count = (out.len() - at - HEAD) / WORD;
    if count == 0 {
        out.truncate(at);
    } else {
        out[at + WORD..at + HEAD].copy_from_slice(&word(count).to_be_bytes());
    }
    count
}

fn put(out: &mut Vec<u8>, kind: u32, attribute: u32) {
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&attribute.to_be_bytes());
}

/// A count of losses as a word.
fn word(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> + use<'_> {
    bytes.as_chunks::<WORD>().0.iter().map(|word| u32::from_be_bytes(*word))
}

/// Why a record was refused. The peer or the line is at fault, and the channel is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// No record has this type.
    #[error("no record has the type {0}")]
    Kind(u32),
    /// A record of losses has none, or too many.
    #[error("a record claims {0} losses, valid is 1 to {MAX_LOSSES}")]
    Count(u32),
    /// A sequence number of more than eight digits.
    #[error("{0} is no sequence number: valid is 0 to 99999999")]
    Number(u32),
}
