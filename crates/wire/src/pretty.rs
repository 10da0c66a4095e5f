//! One-line text of packets for logs and tests.

use core::fmt;

use crate::udt4::{
    Ack, Control, DropRequest, Fragment, Handshake, Largest, LossList, MessageField, Packet, Path, Position, Receipt,
};

/// Number of ranges of a loss list printed before it is truncated.
const RANGES_SHOWN: usize = 8;

impl fmt::Display for Packet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data { header, payload } => {
                let (seq, field, bytes) = (header.seq, header.field, payload.len());
                write!(f, "data seq={seq} {field} bytes={bytes} ts={} to={}", header.timestamp, header.destination)
            }
            Self::Control { timestamp, destination, control } => write!(f, "{control} ts={timestamp} to={destination}"),
        }
    }
}

impl fmt::Display for Control<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handshake(handshake) => handshake.fmt(f),
            Self::KeepAlive => f.write_str("keep-alive"),
            Self::Ack(ack) => ack.fmt(f),
            Self::Nak(losses) => write!(f, "nak {losses}"),
            Self::CongestionWarning => f.write_str("congestion-warning"),
            Self::Shutdown => f.write_str("shutdown"),
            Self::Ack2(number) => write!(f, "ack2 number={}", number.value()),
            Self::DropRequest(request) => request.fmt(f),
            Self::ErrorSignal(code) => write!(f, "error code={code}"),
            Self::Custom { kind, body } => write!(f, "custom kind={kind} bytes={}", body.len()),
            Self::Path(path) => path.fmt(f),
            Self::Receipt(receipt) => receipt.fmt(f),
            Self::Unknown { kind } => write!(f, "unknown type={kind}"),
        }
    }
}

impl fmt::Display for MessageField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let position = match self.position {
            Position::Middle => "middle",
            Position::Last => "last",
            Position::First => "first",
            Position::Only => "only",
        };
        let order = if self.in_order { "in-order" } else { "any-order" };
        write!(f, "msg={} {position} {order}", self.message.value())
    }
}

impl fmt::Display for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "handshake {:?} {:?} version={} ", self.request, self.socket_type, self.version)?;
        write!(f, "isn={} mss={} window={} ", self.isn, self.mss, self.flow_window)?;
        write!(f, "from={} cookie={:#010x} ip={}", self.socket_id, self.cookie, self.peer_ip)?;
        match self.largest {
            Largest::Unsaid => Ok(()),
            Largest::Offered(bytes) | Largest::Answered(bytes) => write!(f, " largest={bytes}"),
        }?;
        if self.wants_receipts { f.write_str(" receipts") } else { Ok(()) }
    }
}

impl fmt::Display for Ack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seq = self.seq();
        match self {
            Self::Light { .. } => return write!(f, "ack-light seq={seq}"),
            Self::Medium { number, .. } => write!(f, "ack-medium number={} seq={seq}", number.value())?,
            Self::Full { number, .. } => write!(f, "ack-full number={} seq={seq}", number.value())?,
        }
        if let Self::Medium { rtt, rtt_var, free_buffer, .. } | Self::Full { rtt, rtt_var, free_buffer, .. } = self {
            write!(f, " rtt={rtt:?} var={rtt_var:?} free={free_buffer}")?;
        }
        match self {
            Self::Full { arrival_rate, capacity, .. } => write!(f, " arrival={arrival_rate}/s capacity={capacity}/s"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for LossList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges = self.iter();
        for (index, range) in ranges.by_ref().take(RANGES_SHOWN).enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match range.len() {
                1 => write!(f, "{comma}{}", range.first)?,
                _ => write!(f, "{comma}{}..={}", range.first, range.last)?,
            }
        }
        match ranges.count() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seq, received, latest, delay, .. } = self;
        write!(f, "receipt seq={seq} received={received} latest={latest} delay={delay:?}")
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Probe { number, padding } => write!(f, "path-probe number={number:#010x} padding={padding}"),
            Self::Reply { number, arrived } => write!(f, "path-reply number={number:#010x} arrived={arrived}"),
            Self::Fragment(fragment) => {
                let Fragment { seq, index, count, bytes, .. } = fragment;
                write!(f, "path-piece seq={seq} {index}/{count} {} bytes", bytes.len())
            }
            Self::Other { kind } => write!(f, "path-{kind}"),
        }
    }
}

impl fmt::Display for DropRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "drop msg={} seq={}..={}", self.message.value(), self.range.first, self.range.last)
    }
}
