//! The transport parameters of a transport, which travel inside the TLS handshake and so cannot be changed by others.
//!
//! ```text
//! term  id u16 | length u16 | value
//! ```
//!
//! | id | value | |
//! | --- | --- | --- |
//! | 1 | protocol | its name in ASCII |
//! | 2 | mode u8 | 0 stream, 1 messages |
//! | 3 | packet size u32 | bytes, headers of IP and UDP included, packet protection excluded |
//! | 4 | flow window u32 | packets |
//! | 5 | first number u32 | sequence number of the sender's first packet |
//! | 6 | options | of the protocol, in its own format |
//! | 7 | largest packet u32 | bytes like 3, of a side that may probe for larger packets |
//! | 8 | call | random bytes of the sender's own call, of a side that meets a peer which calls as well |
//! | 9 | half-close | empty, of a side that can end each direction of a stream alone: see [`inner`](super::inner) |
//! | 10 | receipts | empty, of a side that wants receipts: see [`Receipt`](crate::udt4::Receipt) |
//!
//! TransportParameters of later versions are skipped.

use farhaul_units::SeqNo;

use super::initial_header::{MAX_CLIENT_ID, MIN_CLIENT_ID};

/// Most bytes of a protocol's name.
const MAX_PROTOCOL: usize = 32;

mod id {
    pub(super) const PROTOCOL: u16 = 1;
    pub(super) const MODE: u16 = 2;
    pub(super) const MSS: u16 = 3;
    pub(super) const FLOW_WINDOW: u16 = 4;
    pub(super) const FIRST: u16 = 5;
    pub(super) const OPTIONS: u16 = 6;
    pub(super) const LARGEST: u16 = 7;
    pub(super) const CALL: u16 = 8;
    pub(super) const HALF_CLOSE: u16 = 9;
    pub(super) const RECEIPTS: u16 = 10;
}

/// One side's contribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportParameters<'a> {
    /// The name of the protocol inside.
    pub protocol: &'a str,
    /// Whether the connection carries messages, and not a stream.
    pub messages: bool,
    /// Largest packet of the transport, bytes.
    pub mss: u32,
    /// Packets that this side has room for.
    pub flow_window: u32,
    /// Sequence number of this side's first packet.
    pub first: SeqNo,
    /// Options of the protocol.
    pub options: &'a [u8],
    /// Largest packet that this side sends and takes, bytes. `None` if it does not probe for larger ones.
    pub largest: Option<u32>,
    /// The client id of this side's own call, [`MIN_CLIENT_ID`] to [`MAX_CLIENT_ID`] bytes. `None` outside of a rendezvous.
    pub call: Option<&'a [u8]>,
    /// Whether this side can end each direction of a stream alone. It takes two sides that can.
    pub half_close: bool,
    /// Whether this side wants receipts.
    pub receipts: bool,
}

/// Why transport parameters cannot be read. Their sender holds the keys, so the fault is the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParametersError {
    /// A term goes beyond the end, or its length is not that of its value.
    #[error("the term {0} has a wrong length")]
    Length(u16),
    /// A term that every connection needs is missing.
    #[error("the term {0} is missing")]
    Missing(u16),
    /// A term appears twice.
    #[error("the term {0} appears twice")]
    Twice(u16),
    /// A value that the term never has.
    #[error("the term {0} has a value that it never has")]
    Value(u16),
}

impl<'a> TransportParameters<'a> {
    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut term = |id: u16, value: &[u8]| {
            out.extend_from_slice(&id.to_be_bytes());
            out.extend_from_slice(&u16::try_from(value.len()).unwrap_or(0).to_be_bytes());
            out.extend_from_slice(value);
        };
        term(id::PROTOCOL, &self.protocol.as_bytes()[..self.protocol.len().min(MAX_PROTOCOL)]);
        term(id::MODE, &[self.messages.into()]);
        term(id::MSS, &self.mss.to_be_bytes());
        term(id::FLOW_WINDOW, &self.flow_window.to_be_bytes());
        term(id::FIRST, &self.first.value().to_be_bytes());
        if !self.options.is_empty() {
            term(id::OPTIONS, self.options);
        }
        if let Some(largest) = self.largest {
            term(id::LARGEST, &largest.to_be_bytes());
        }
        if let Some(call) = self.call {
            term(id::CALL, call);
        }
        if self.half_close {
            term(id::HALF_CLOSE, &[]);
        }
        if self.receipts {
            term(id::RECEIPTS, &[]);
        }
    }

    /// Reads transport parameters.
    ///
    /// # Errors
    /// See [`ParametersError`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, ParametersError> {
        // By their ids, which begin at one.
        let mut values: [Option<&'a [u8]>; id::RECEIPTS as usize] = [None; id::RECEIPTS as usize];
        let mut rest = bytes;
        while let Some((id, behind)) = rest.split_first_chunk() {
            let id = u16::from_be_bytes(*id);
            let (length, behind) = behind.split_first_chunk().ok_or(ParametersError::Length(id))?;
            let (value, behind) =
                behind.split_at_checked(u16::from_be_bytes(*length).into()).ok_or(ParametersError::Length(id))?;
            rest = behind;
            let place = usize::from(id).checked_sub(1).and_then(|at| values.get_mut(at));
            if place.is_some_and(|place| place.replace(value).is_some()) {
                return Err(ParametersError::Twice(id));
            }
        }
        if !rest.is_empty() {
            return Err(ParametersError::Length(0));
        }
        let [protocol, mode, mss, window, first, options, largest, call, half_close, receipts] = values;
        let protocol = protocol.ok_or(ParametersError::Missing(id::PROTOCOL))?;
        if protocol.len() > MAX_PROTOCOL || !protocol.is_ascii() {
            return Err(ParametersError::Value(id::PROTOCOL));
        }
        let messages = match mode.ok_or(ParametersError::Missing(id::MODE))? {
            [0] => false,
            [1] => true,
            [_] => return Err(ParametersError::Value(id::MODE)),
            _ => return Err(ParametersError::Length(id::MODE)),
        };
        let first = number(first, id::FIRST)?;
        if first >> 31 != 0 {
            return Err(ParametersError::Value(id::FIRST));
        }
        if call.is_some_and(|call| !(MIN_CLIENT_ID..=MAX_CLIENT_ID).contains(&call.len())) {
            return Err(ParametersError::Length(id::CALL));
        }
        for (value, id) in [(half_close, id::HALF_CLOSE), (receipts, id::RECEIPTS)] {
            if value.is_some_and(|value| !value.is_empty()) {
                return Err(ParametersError::Length(id));
            }
        }
        Ok(Self {
            protocol: str::from_utf8(protocol).map_err(|_| ParametersError::Value(id::PROTOCOL))?,
            messages,
            mss: number(mss, id::MSS)?,
            flow_window: number(window, id::FLOW_WINDOW)?,
            first: SeqNo::new(first),
            options: options.unwrap_or_default(),
            largest: largest.map(|value| number(Some(value), id::LARGEST)).transpose()?,
            call,
            half_close: half_close.is_some(),
            receipts: receipts.is_some(),
        })
    }
}

/// A number that every connection needs.
fn number(value: Option<&[u8]>, id: u16) -> Result<u32, ParametersError> {
    let value = value.ok_or(ParametersError::Missing(id))?;
    value.try_into().map(u32::from_be_bytes).map_err(|_| ParametersError::Length(id))
}
