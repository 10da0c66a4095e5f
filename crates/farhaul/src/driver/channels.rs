//! Kernel TCP connections for transports that need channels beside their datagrams.
//!
//! The driver thread owns the sockets. In each of its rounds it serves them in three steps:
//!
//! ```text
//!   gather    without the lock   accept, connect, read and write a few blocks   ──▶ news
//!   hand_in   under the lock     news                                           ──▶ transport
//!   perform   without the lock   requests of the transport, from the queue     ──▶ sockets
//! ```
//!
//! | to change … | open |
//! | --- | --- |
//! | the state under the lock: requests, the port | `request_queue.rs` |
//! | the TCP port of the same number as the UDP port | `port.rs` |
//! | accepting | `acceptor.rs` |
//! | callers of other programs | `other_clients.rs` |
//! | one TCP connection | `tcp.rs` of `farhaul-udp` |
//! | tokens, connections and their channels | `table.rs` |
//! | time limits of silent and ending channels | `limits.rs` |
//!
//! **Hostile peers.** One round has at most [`TURNS_PER_ROUND`] turns, each a block each way of one channel, so channels cannot
//! delay datagrams. Channels with work are served round robin. A peer that opens channels and says nothing loses the oldest when the
//! endpoint is full. The [caller of a channel](farhaul_proto::Channels) must therefore speak first.

mod acceptor;
mod limits;
mod other_clients;
mod port;
mod request_queue;
mod table;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use farhaul_proto::{ChannelEnd, Channels, ConnectionId};
use farhaul_udp::tcp::{BLOCK, Received, Sent, TcpChannel};
use farhaul_udp::{Ready, Waiter};
use farhaul_units::Instant;
use socket2::Socket;

use self::acceptor::Acceptor;
use self::limits::{Limits, most_accepted};
pub(crate) use self::other_clients::OtherClient;
use self::other_clients::{Caller, OtherClients};
pub(super) use self::port::{ChannelPort, open_pair};
pub(super) use self::request_queue::RequestQueue;
use self::request_queue::{Outbox, Request};
pub(super) use self::table::{ALARM, SOCKET};
use self::table::{Channel, DOOR, Key, Table};

/// Turns of channels in a round, each with a block in each direction. Together that is 30 µs of copying.
const TURNS_PER_ROUND: usize = 8;

/// Channels accepted in a round, at a few microseconds each.
const ACCEPTS: usize = 16;

/// The sockets of a port's channels. The driver thread owns it.
pub(super) struct ChannelSockets {
    /// The address of the UDP port.
    local: SocketAddr,
    table: Table,
    /// Channels that peers opened.
    accepted: usize,
    /// Most of them.
    most_accepted: usize,
    limits: Limits,
    acceptor: Acceptor,
    /// The listening socket, as of the last look at the queue.
    listener: Option<Arc<Socket>>,
    /// Where callers of other programs go, as of that look. `None` if the transport takes all callers.
    other_clients: Option<OtherClients>,
    /// Channels with work, in the order of their rounds.
    work: VecDeque<Key>,
    news: Vec<News>,
    /// Bytes that arrived, back to back.
    arrived: Box<[u8]>,
    arrived_len: usize,
    requests: Outbox,
    /// The queue says that finished channels have something to deliver.
    undelivered: bool,
}

/// What the transport does not know yet.
#[derive(Debug)]
enum News {
    Accepted(Key, SocketAddr),
    /// A caller that may be another program.
    Unsorted(Key),
    Opened(ConnectionId),
    /// Bytes, by their place in `arrived`.
    Arrived(ConnectionId, Range<usize>),
    Drained(ConnectionId),
    Ended(ConnectionId, ChannelEnd),
}

impl News {
    fn id(&self) -> Option<ConnectionId> {
        match *self {
            Self::Accepted(..) | Self::Unsorted(_) => None,
            Self::Opened(id) | Self::Arrived(id, _) | Self::Drained(id) | Self::Ended(id, _) => Some(id),
        }
    }
}

impl ChannelSockets {
    /// No channels yet, for a UDP port at `local`.
    pub(super) fn new(local: SocketAddr) -> Self {
        Self {
            local,
            table: Table::default(),
            accepted: 0,
            most_accepted: most_accepted(),
            limits: Limits::default(),
            acceptor: Acceptor::default(),
            listener: None,
            other_clients: None,
            work: VecDeque::new(),
            news: Vec::new(),
            arrived: vec![0; TURNS_PER_ROUND * BLOCK].into(),
            arrived_len: 0,
            requests: Outbox::default(),
            undelivered: false,
        }
    }

    /// Notes the sources that the waiter reports.
    pub(super) fn note(&mut self, ready: &[Ready]) {
        for source in ready {
            if source.token == DOOR {
                self.acceptor.note_caller();
            } else if let Some(key) = Key::of(source.token)
                && let Some(channel) = self.table.get(key)
            {
                channel.readable |= source.readable;
                channel.writable |= source.writable;
                self.enqueue(key);
            }
        }
    }

    /// Whether to call the other methods again without waiting.
    pub(super) fn has_work(&self) -> bool {
        let all_delivered = self.undelivered && !self.limits.has_ending();
        all_delivered || !self.news.is_empty() || !self.work.is_empty() || self.acceptor.is_ready()
    }

    /// When to call them again without another reason.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.limits.deadline().into_iter().chain(self.acceptor.deadline()).min()
    }

    /// Accepts, and moves a few blocks. Needs no lock.
    pub(super) fn gather(&mut self, waiter: &Waiter) {
        for _ in 0..ACCEPTS {
            let Some((stream, from)) = self.acceptor.accept() else { break };
            // The drop of a channel without a place resets it, so that its caller knows.
            if let Ok(tcp) = TcpChannel::accepted(stream)
                && (self.accepted < self.most_accepted || self.make_room())
            {
                let mut channel = Channel::new(tcp, true);
                channel.unsorted = self.other_clients.is_some().then_some(from);
                let is_sorted = channel.unsorted.is_none();
                let key = self.add(channel, waiter);
                self.news.push(if is_sorted { News::Accepted(key, from) } else { News::Unsorted(key) });
            }
        }
        for _ in 0..TURNS_PER_ROUND {
            let Some(key) = self.work.pop_front() else { break };
            self.serve(key, waiter);
        }
    }

    /// Passes the news to the transport, and takes the requests that waited in the queue.
    pub(super) fn hand_in<T: Channels>(&mut self, now: Instant, transport: &mut T, queue: &mut RequestQueue) {
        self.take(queue);
        let mut news = std::mem::take(&mut self.news);
        for item in news.drain(..) {
            if item.id().is_some_and(|id| self.requests.forgets(id)) {
                continue;
            }
            match item {
                News::Accepted(key, from) => match transport.accept_channel(now, from) {
                    Some(id) => self.attach_accepted(now, key, id),
                    None => self.remove(key),
                },
                News::Unsorted(key) => self.expect_words(now, key),
                News::Opened(id) => transport.channel_opened(now, id),
                News::Arrived(id, range) => transport.handle_channel(now, id, &self.arrived[range]),
                News::Drained(id) => transport.channel_drained(now, id),
                News::Ended(id, end) => transport.channel_ended(now, id, end),
            }
        }
        // Attaching may have brought more.
        news.append(&mut self.news);
        self.news = news;
        self.arrived_len = 0;
        queue.undelivered = self.limits.has_ending() || self.requests.finishes();
    }

    /// Takes the requests in the queue, to [`perform`](Self::perform) them without the lock.
    pub(super) fn take(&mut self, queue: &mut RequestQueue) {
        self.requests.append(&mut queue.outbox);
        if std::mem::take(&mut queue.port_changed) {
            self.listener = queue.port.listener().cloned();
            self.other_clients = queue.other_clients.clone();
        }
        self.undelivered = queue.undelivered;
    }

    /// Does what the transport requested, and ends the channels whose time is over.
    pub(super) fn perform(&mut self, now: Instant, waiter: &Waiter) {
        let mut requests = std::mem::take(&mut self.requests);
        for request in requests.requests.drain(..) {
            match request {
                Request::Open(id, to) => self.open(id, to, waiter),
                Request::Send(id, range) => self.send(id, &requests.bytes[range], waiter),
                Request::Finish(id) => self.finish(now, id, waiter),
                Request::Reset(id) => {
                    if let Some(key) = self.detach(id) {
                        self.remove(key);
                    }
                }
            }
        }
        requests.clear();
        self.requests = requests;
        while let Some(key) = self.limits.overdue(now) {
            self.fail(key, ChannelEnd::Failed);
        }
        self.acceptor.tend(self.listener.as_ref(), now, waiter);
    }

    fn open(&mut self, id: ConnectionId, to: SocketAddr, waiter: &Waiter) {
        match TcpChannel::connect(self.local, to) {
            Ok(tcp) => {
                let key = self.add(Channel::new(tcp, false), waiter);
                self.attach(key, id);
            }
            Err(error) => self.news.push(News::Ended(id, end_of(&error))),
        }
    }

    fn send(&mut self, id: ConnectionId, bytes: &[u8], waiter: &Waiter) {
        if let Some(key) = self.table.key_of(id)
            && let Some(channel) = self.table.get(key)
        {
            let sent = channel.tcp.send(bytes);
            self.on_sent(key, sent);
            self.tend(key, waiter);
        }
    }

    fn finish(&mut self, now: Instant, id: ConnectionId, waiter: &Waiter) {
        let Some(key) = self.detach(id) else { return };
        let Some(channel) = self.table.get(key) else { return };
        channel.tcp.finish();
        if let Some(eldest) = self.limits.begin_to_end(now, key, channel) {
            self.remove(eldest);
        }
        self.tend(key, waiter);
    }

    fn add(&mut self, channel: Channel, waiter: &Waiter) -> Key {
        self.accepted += usize::from(channel.accepted);
        let key = self.table.insert(channel);
        self.tend(key, waiter);
        key
    }

    fn attach_accepted(&mut self, now: Instant, key: Key, id: ConnectionId) {
        self.attach(key, id);
        self.expect_words(now, key);
    }

    fn expect_words(&mut self, now: Instant, key: Key) {
        if let Some(channel) = self.table.get(key) {
            self.limits.expect_words(now, key, channel);
        }
    }

    fn attach(&mut self, key: Key, id: ConnectionId) {
        if self.table.get(key).is_none() {
            // The system could not watch it.
            self.news.push(News::Ended(id, ChannelEnd::Failed));
        } else if let Some(left) = self.table.attach(key, id) {
            self.remove(left);
        }
    }

    /// Takes its channel from a connection that the transport forgot, which hears nothing more.
    fn detach(&mut self, id: ConnectionId) -> Option<Key> {
        self.news.retain(|item| item.id() != Some(id));
        self.table.detach(id)
    }

    /// Ends a channel that holds a place without need. Returns whether there was one.
    fn make_room(&mut self) -> bool {
        let table = &mut self.table;
        let spare = self.limits.eldest_spare(|key| table.get(key).is_some_and(|it| it.tcp.waits_for_peers_end()));
        let Some(key) = spare else { return false };
        self.fail(key, ChannelEnd::Failed);
        true
    }

    /// Moves a block in each direction, where the kernel is ready.
    fn serve(&mut self, key: Key, waiter: &Waiter) {
        let Some(channel) = self.table.get(key) else { return };
        channel.queued = false;
        if std::mem::take(&mut channel.writable) {
            self.write(key);
        }
        if let Some(channel) = self.table.get(key)
            && std::mem::take(&mut channel.readable)
        {
            match channel.unsorted {
                Some(from) => self.sort(key, from, waiter),
                None => self.read(key),
            }
        }
        self.tend(key, waiter);
    }

    /// Tells by its first bytes which program a caller is. The transport takes those of its own protocol.
    fn sort(&mut self, key: Key, from: SocketAddr, waiter: &Waiter) {
        let Some(channel) = self.table.get(key) else { return };
        match other_clients::judge(|out| channel.tcp.peek(out)) {
            Caller::Silent => {}
            Caller::Gone => self.remove(key),
            Caller::Ours => {
                channel.unsorted = None;
                self.limits.hear(key, channel);
                // Its bytes wait in the kernel until the transport has accepted it.
                self.news.push(News::Accepted(key, from));
            }
            Caller::OtherClient => {
                // Only the drop of a channel removes it from the waiter.
                let unwatched = waiter.unwatch(&channel.tcp);
                if let Some(channel) = self.take_out(key)
                    && let (Some(other_clients), Ok(()), Ok(stream)) =
                        (&self.other_clients, unwatched, channel.tcp.into_stream())
                {
                    other_clients.give(stream, from);
                }
            }
        }
    }

    fn write(&mut self, key: Key) {
        let Some(channel) = self.table.get(key) else { return };
        if channel.tcp.is_connecting() {
            match channel.tcp.establish() {
                Ok(true) => self.news.extend(channel.id.map(News::Opened)),
                Ok(false) => {}
                Err(error) => self.fail(key, end_of(&error)),
            }
        } else if channel.tcp.has_rest() {
            let sent = channel.tcp.send_rest();
            self.on_sent(key, sent);
        }
    }

    fn on_sent(&mut self, key: Key, sent: Sent) {
        let Some(channel) = self.table.get(key) else { return };
        match sent {
            Sent::All => self.news.extend(channel.id.map(News::Drained)),
            Sent::Part => channel.writable = true,
            Sent::Blocked => {}
            Sent::Broken if channel.tcp.peer_ended() => self.fail(key, ChannelEnd::Failed),
            // What arrived before comes first.
            Sent::Broken => channel.readable = true,
        }
    }

    fn read(&mut self, key: Key) {
        let Some(channel) = self.table.get(key) else { return };
        let start = self.arrived_len;
        let received = channel.tcp.receive(&mut self.arrived[start..start + BLOCK]);
        match (received, channel.id) {
            (Received::Bytes(len), id) => {
                channel.readable = len == BLOCK;
                // Nobody wants the others: the channel is finished.
                if let Some(id) = id {
                    self.limits.hear(key, channel);
                    self.arrived_len += len;
                    self.news.push(News::Arrived(id, start..start + len));
                }
            }
            (Received::Nothing, _) => {}
            (Received::Finished, id) => self.news.extend(id.map(|id| News::Ended(id, ChannelEnd::Finished))),
            (Received::Failed, _) => self.fail(key, ChannelEnd::Failed),
        }
    }

    /// Watches a channel for what it waits for, and lets it go when both sides have ended it.
    fn tend(&mut self, key: Key, waiter: &Waiter) {
        let Some(channel) = self.table.get(key) else { return };
        if channel.id.is_none() && channel.tcp.is_over() {
            self.remove(key);
        } else if !channel.watch(key, waiter) {
            self.fail(key, ChannelEnd::Failed);
        } else if channel.readable || channel.writable {
            self.enqueue(key);
        }
    }

    fn enqueue(&mut self, key: Key) {
        if let Some(channel) = self.table.get(key)
            && !std::mem::replace(&mut channel.queued, true)
        {
            self.work.push_back(key);
        }
    }

    /// Removes a channel and tells the transport, unless that has forgotten it.
    fn fail(&mut self, key: Key, end: ChannelEnd) {
        let id = self.table.get(key).and_then(|channel| channel.id);
        self.news.extend(id.map(|id| News::Ended(id, end)));
        self.remove(key);
    }

    fn remove(&mut self, key: Key) {
        self.take_out(key);
    }

    fn take_out(&mut self, key: Key) -> Option<Channel> {
        let mut channel = self.table.remove(key)?;
        self.limits.forget(key, &mut channel);
        self.accepted -= usize::from(channel.accepted);
        Some(channel)
    }
}

/// The end of a channel that could not be opened.
fn end_of(error: &io::Error) -> ChannelEnd {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => ChannelEnd::Refused,
        _ => ChannelEnd::Failed,
    }
}
