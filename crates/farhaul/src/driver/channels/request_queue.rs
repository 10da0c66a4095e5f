//! The half of a port's channels that all threads share under the lock: requests of the transport, and the port.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::mpsc::Receiver;

use farhaul_proto::{ChannelOutput, Channels, ConnectionId};
use farhaul_units::Instant;

use super::other_clients::{OtherClient, OtherClients};
use super::port::ChannelPort;

/// Memory for requests that is kept when they are done.
const KEPT: usize = 256 << 10;

/// What application threads and the driver thread leave for the driver thread's channel sockets.
#[derive(Debug)]
pub(in crate::driver) struct RequestQueue {
    pub(super) outbox: Outbox,
    pub(super) port: ChannelPort,
    /// The port was opened or closed, and the driver thread does not know.
    pub(super) port_changed: bool,
    /// Where callers of other programs go.
    pub(super) other_clients: Option<OtherClients>,
    /// Channels that the transport finished still have bytes or their end to deliver.
    pub(super) undelivered: bool,
}

/// Requests in order. Their bytes stand back to back.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pub(super) requests: Vec<Request>,
    pub(super) bytes: Vec<u8>,
    /// The channels that the transport forgot by one of them.
    forgotten: Vec<ConnectionId>,
}

/// A [`ChannelOutput`] with a place in [`Outbox::bytes`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Open(ConnectionId, SocketAddr),
    Send(ConnectionId, Range<usize>),
    Finish(ConnectionId),
    Reset(ConnectionId),
}

impl RequestQueue {
    pub(in crate::driver) fn new(port: ChannelPort) -> Self {
        Self { outbox: Outbox::default(), port, port_changed: false, other_clients: None, undelivered: false }
    }

    /// Takes the transport's requests.
    pub(in crate::driver) fn collect(&mut self, now: Instant, transport: &mut impl Channels) {
        while let Some(output) = transport.poll_channel(now) {
            self.undelivered |= matches!(output, ChannelOutput::Finish(_));
            self.outbox.put(output);
        }
    }

    /// Whether the driver thread has something to do.
    pub(in crate::driver) fn is_waiting(&self) -> bool {
        self.port_changed || !self.outbox.requests.is_empty()
    }

    /// Whether finished channels still have something to deliver.
    pub(in crate::driver) fn is_undelivered(&self) -> bool {
        self.undelivered
    }

    /// Lets peers open channels.
    ///
    /// # Errors
    /// Another program has the TCP port.
    pub(in crate::driver) fn open_port(&mut self) -> io::Result<()> {
        self.port_changed = true;
        self.port.open()
    }

    /// Gives callers of other programs to the application from now on, until the port closes.
    pub(in crate::driver) fn other_clients(&mut self) -> Receiver<OtherClient> {
        let (other_clients, receiver) = OtherClients::new();
        self.other_clients = Some(other_clients);
        self.port_changed = true;
        receiver
    }

    /// Refuses further channels.
    pub(in crate::driver) fn close_port(&mut self) {
        self.port_changed = true;
        self.other_clients = None;
        self.port.close();
    }

    /// The port.
    pub(in crate::driver) fn port(&self) -> &ChannelPort {
        &self.port
    }
}

impl Outbox {
    fn put(&mut self, output: ChannelOutput<'_>) {
        let request = match output {
            ChannelOutput::Open(id, to) => Request::Open(id, to),
            ChannelOutput::Send(id, bytes) => Request::Send(id, self.store(bytes)),
            ChannelOutput::Finish(id) => {
                self.forgotten.push(id);
                Request::Finish(id)
            }
            ChannelOutput::Reset(id) => {
                self.forgotten.push(id);
                Request::Reset(id)
            }
        };
        self.requests.push(request);
    }

    /// Moves all requests of `other` behind those that are here.
    pub(super) fn append(&mut self, other: &mut Self) {
        if self.requests.is_empty() {
            std::mem::swap(self, other);
            return;
        }
        let offset = self.bytes.len();
        self.bytes.append(&mut other.bytes);
        self.forgotten.append(&mut other.forgotten);
        self.requests.extend(other.requests.drain(..).map(|request| match request {
            Request::Send(id, range) => Request::Send(id, range.start + offset..range.end + offset),
            request => request,
        }));
    }

    /// Whether the transport forgot this channel.
    pub(super) fn forgets(&self, id: ConnectionId) -> bool {
        self.forgotten.contains(&id)
    }

    /// Whether a channel is to be finished.
    pub(super) fn finishes(&self) -> bool {
        self.requests.iter().any(|request| matches!(request, Request::Finish(_)))
    }

    /// Forgets everything, but keeps some memory.
    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.forgotten.clear();
    }

    fn store(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_keep_their_order_and_bytes_when_they_are_moved() {
        let ids = [0, 1].map(|slot| ConnectionId::from_parts(slot, 0));
        let (mut first, mut second, mut all) = (Outbox::default(), Outbox::default(), Outbox::default());
        first.put(ChannelOutput::Send(ids[0], b"one"));
        second.put(ChannelOutput::Send(ids[1], b"two"));
        second.put(ChannelOutput::Finish(ids[1]));
        all.append(&mut first);
        all.append(&mut second);
        assert_eq!(all.requests, [Request::Send(ids[0], 0..3), Request::Send(ids[1], 3..6), Request::Finish(ids[1])]);
        assert_eq!(all.bytes, b"onetwo");
        assert!(all.forgets(ids[1]) && !all.forgets(ids[0]) && all.finishes());
        assert!(first.requests.is_empty() && second.requests.is_empty() && second.bytes.is_empty());
    }
}
