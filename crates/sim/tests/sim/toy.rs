//! A minimal transport for lossy paths: go-back-N with a fixed window, one connection.

use core::net::SocketAddr;
use std::collections::VecDeque;

use farhaul_proto::{
    AddressPair, Batch, Channels, ConnectError, ConnectionId, ConnectionLost, Event, Read, Stats, StreamError, Streams,
    Transmit, Transport,
};
use farhaul_units::{Duration, Instant};

const ID: ConnectionId = ConnectionId::from_parts(0, 0);
const PAYLOAD: usize = 1_000;
const WINDOW: u64 = 64 * PAYLOAD as u64;
const RETRY: Duration = Duration::from_millis(150);
const RECV_BUFFER: usize = 1 << 20;

const OPEN: u8 = 0;
const OPENED: u8 = 1;
const DATA: u8 = 2;
const ACK: u8 = 3;
const CLOSE: u8 = 4;

#[derive(Default)]
pub(crate) struct Toy {
    peer: Option<SocketAddr>,
    opening: bool,
    connected: bool,
    /// Bytes written and not acknowledged.
    unacked: VecDeque<u8>,
    acked: u64,
    sent: u64,
    blocked: bool,
    inbox: VecDeque<u8>,
    received: u64,
    starved: bool,
    finishing: bool,
    closed_by_peer: bool,
    control: VecDeque<(u8, u64)>,
    events: VecDeque<Event>,
    retry_at: Option<Instant>,
    stats: Stats,
}

impl Toy {
    fn establish(&mut self, event: Event) {
        if !self.connected {
            (self.connected, self.opening, self.retry_at) = (true, false, None);
            self.events.push_back(event);
        }
    }

    fn on_data(&mut self, offset: u64, payload: &[u8]) {
        if offset == self.received && self.inbox.len() + payload.len() <= RECV_BUFFER {
            self.received += payload.len() as u64;
            self.inbox.extend(payload);
            if std::mem::take(&mut self.starved) {
                self.events.push_back(Event::Readable(ID));
            }
        }
        self.control.push_back((ACK, self.received));
    }

    fn on_ack(&mut self, now: Instant, ack: u64) {
        if ack > self.acked && ack <= self.acked + self.unacked.len() as u64 {
            self.unacked.drain(..(ack - self.acked) as usize);
            self.acked = ack;
            self.sent = self.sent.max(ack);
            self.retry_at = (!self.unacked.is_empty()).then_some(now + RETRY);
            if std::mem::take(&mut self.blocked) {
                self.events.push_back(Event::Writable(ID));
            }
        }
        if self.finishing && self.unacked.is_empty() {
            self.finishing = false;
            self.control.push_back((CLOSE, 0));
            self.events.push_back(Event::Finished(ID));
        }
    }
}

impl Transport for Toy {
    fn handle_datagrams(
        &mut self,
        now: Instant,
        _: Instant,
        from: impl Into<AddressPair>,
        bytes: &mut [u8],
        _stride: usize,
    ) {
        let Some((header, payload)) = bytes.split_first_chunk::<9>() else { return };
        let number = header[1..].iter().fold(0, |n, &byte| n << 8 | u64::from(byte));
        match header[0] {
            OPEN => {
                self.peer = Some(from.into().peer);
                self.establish(Event::Accepted(ID));
                self.control.push_back((OPENED, 0));
            }
            OPENED => self.establish(Event::Connected(ID)),
            DATA => self.on_data(number, payload),
            ACK => self.on_ack(now, number),
            CLOSE if !std::mem::replace(&mut self.closed_by_peer, true) => {
                self.retry_at = None;
                self.events.push_back(Event::Closed(ID, ConnectionLost::ClosedByPeer));
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.retry_at.is_some_and(|at| at <= now) {
            self.stats.totals.packets_retransmitted += (self.sent - self.acked).div_ceil(PAYLOAD as u64);
            self.sent = self.acked;
            self.retry_at = None;
            if self.opening {
                self.control.push_back((OPEN, 0));
                self.retry_at = Some(now + RETRY);
            }
        }
    }

    fn poll_transmit<'a>(&'a mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        let to = self.peer?;
        let out = scratch.cleared();
        if let Some((kind, number)) = self.control.pop_front() {
            out.push(kind);
            out.extend(number.to_be_bytes());
        } else {
            let start = (self.sent - self.acked) as usize;
            let end = (start + PAYLOAD).min(self.unacked.len()).min(WINDOW as usize);
            if !self.connected || start >= end || self.closed_by_peer {
                return None;
            }
            out.push(DATA);
            out.extend(self.sent.to_be_bytes());
            out.extend(self.unacked.range(start..end));
            self.sent += (end - start) as u64;
            self.stats.totals.packets_sent += 1;
            self.retry_at = self.retry_at.or(Some(now + RETRY));
        }
        Some(Transmit::between(to.into(), scratch.bytes().len(), scratch.bytes()))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.retry_at
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

impl Streams for Toy {
    fn connect(&mut self, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        (self.peer, self.opening, self.retry_at) = (Some(peer), true, Some(now + RETRY));
        self.control.push_back((OPEN, 0));
        Ok(ID)
    }

    fn write(&mut self, _now: Instant, _id: ConnectionId, data: &[u8]) -> Result<usize, StreamError> {
        let taken = self.writable(ID).min(data.len());
        self.unacked.extend(&data[..taken]);
        self.blocked |= taken == 0;
        Ok(taken)
    }

    fn writable(&self, _id: ConnectionId) -> usize {
        2 * WINDOW as usize - self.unacked.len()
    }

    fn read(&mut self, _now: Instant, _id: ConnectionId, out: &mut [u8]) -> Result<Read, StreamError> {
        let count = self.inbox.len().min(out.len());
        if count == 0 {
            self.starved = true;
            return Ok(if self.closed_by_peer { Read::End } else { Read::Pending });
        }
        out.iter_mut().zip(self.inbox.drain(..count)).for_each(|(out, byte)| *out = byte);
        self.stats.totals.bytes_read += count as u64;
        Ok(Read::Data(count))
    }

    fn readable(&self, _id: ConnectionId) -> usize {
        self.inbox.len()
    }

    fn finish(&mut self, now: Instant, _id: ConnectionId) {
        self.finishing = true;
        self.on_ack(now, 0);
    }

    fn close(&mut self, _now: Instant, _id: ConnectionId) {
        self.control.push_back((CLOSE, 0));
    }

    fn abort(&mut self, now: Instant, id: ConnectionId) {
        self.close(now, id);
    }

    fn release(&mut self, _now: Instant, _id: ConnectionId) {}

    fn is_closing(&self, _id: ConnectionId) -> bool {
        false
    }

    fn peer(&self, _id: ConnectionId) -> Option<SocketAddr> {
        self.peer
    }

    fn stats(&self, _now: Instant, _id: ConnectionId) -> Option<Stats> {
        Some(self.stats)
    }
}

impl Channels for Toy {}
