//! A transport and the waiters of its connections: all state under the lock.

use std::collections::{BTreeSet, VecDeque};
use std::sync::mpsc::Receiver;

use farhaul_proto::{Channels, ConnectionId, ConnectionLost, DatagramKind, Event, Read, Streams};
use farhaul_udp::Timeline;
use farhaul_units::Instant;

use super::channels::{OtherClient, RequestQueue};
use super::closing::Closing;
use super::lingering::Lingering;
use super::probes::Answering;
use super::transmit_queue::TransmitQueue;
use super::wait_queue::{WaitQueue, Wakeups};
use super::wake_coalescing::WakeCoalescing;
use crate::error::Error;

/// Bytes per read of discarded input.
const THROWN_AWAY: usize = 16 << 10;

/// The condition that a caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitPlace {
    /// Data or the end can be read.
    Read(ConnectionId),
    /// There is room to write.
    Write(ConnectionId),
    /// The connection is established, finished or lost.
    Change(ConnectionId),
    /// A peer connected.
    Accept,
}

/// The state of the driver thread, or of a caller that drives in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DriverThread {
    /// It will check the transport before it sleeps again.
    Awake,
    /// It sleeps until this instant, or until something arrives.
    Asleep(Option<Instant>),
    /// A caller has driven in its place until a moment ago. The thread looks at this instant whether it came back.
    Replaced(Instant),
    /// It has ended, and every connection with it.
    Gone,
}

/// The transport and its driver's bookkeeping.
pub(crate) struct Core<T> {
    /// The sans-IO transport.
    pub(crate) transport: T,
    /// Datagrams that wait for the socket.
    pub(super) transmit_queue: TransmitQueue,
    /// Requests for channels. `None` if the transport needs none.
    pub(super) channel_requests: Option<RequestQueue>,
    /// Answers measured streams, if the port does.
    pub(crate) answering: Option<Answering>,
    pub(super) timeline: Timeline,
    pub(super) thread: DriverThread,
    /// Asleep is a caller that drives in place of the thread.
    pub(super) caller_drives: bool,
    /// The last handle is gone. The driver thread closes connections and ends.
    pub(super) closing: bool,
    pub(super) wakeups: Wakeups,
    /// Readers that wait for more data of a stream of packets.
    pub(super) wake_coalescing: WakeCoalescing,
    accepting: Accepting,
    slots: Vec<Option<Slot>>,
    /// Slots in use.
    pub(super) connections: usize,
    /// Times at which the waiters for a change of a connection check again, even without an event.
    alarms: BTreeSet<(Instant, ConnectionId)>,
    /// Connections without handles that still deliver their data.
    lingering: Lingering,
    /// Connections that this side closed or released and whose peers may not know yet, oldest first.
    leaving: VecDeque<ConnectionId>,
    /// Present while such connections exist. [`wait_idle`](super::wait_idle) waits for it, even if a
    /// handle is left.
    closing_connections: Option<Closing>,
}

/// Connections that peers opened and the application has not accepted yet.
#[derive(Debug, Default)]
struct Accepting {
    open: bool,
    queue: VecDeque<ConnectionId>,
    waiters: WaitQueue,
}

/// The driver's record of a connection.
#[derive(Debug)]
struct Slot {
    id: ConnectionId,
    status: Status,
    handle: Handle,
    readable: WaitQueue,
    writable: WaitQueue,
    changed: WaitQueue,
    /// The time of its alarm.
    alarm: Option<Instant>,
}

/// Whether the application has a handle of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handle {
    Held,
    /// Held. Once dropped, the connection goes on until it is finished.
    Dispensable,
    Dropped,
}

/// The state of a connection, as far as its events told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// It was established.
    pub(crate) connected: bool,
    /// Everything was acknowledged after `finish_sending`.
    pub(crate) sent: bool,
    /// Everything was acknowledged after `finish`, or both directions have ended.
    pub(crate) finished: bool,
    /// The reason for its end, if it is over.
    pub(crate) lost: Option<ConnectionLost>,
}

impl<T: Streams + Channels> Core<T> {
    /// A core around a transport that has no connections yet.
    pub(crate) fn new(transport: T) -> Self {
        Self {
            transport,
            transmit_queue: TransmitQueue::new(),
            channel_requests: None,
            answering: None,
            timeline: Timeline::default(),
            thread: DriverThread::Awake,
            caller_drives: false,
            closing: false,
            wakeups: Wakeups::default(),
            wake_coalescing: WakeCoalescing::default(),
            accepting: Accepting::default(),
            slots: Vec::new(),
            connections: 0,
            alarms: BTreeSet::new(),
            lingering: Lingering::default(),
            leaving: VecDeque::new(),
            closing_connections: None,
        }
    }

    /// Answers measured streams from now on.
    pub(crate) fn answer_probes(&mut self) -> &mut Answering {
        if let Some(datagrams) = self.transport.datagrams() {
            datagrams.want_datagrams(DatagramKind::Question, true);
        }
        self.answering.get_or_insert_default()
    }

    /// Adds a connection that this side opened.
    pub(crate) fn open(&mut self, id: ConnectionId) {
        self.put(id, Status::default());
    }

    /// The state of a connection. `None` if its handle is gone.
    pub(crate) fn status(&self, id: ConnectionId) -> Option<Status> {
        Some(self.slots.get(id.slot())?.as_ref().filter(|slot| slot.id == id)?.status)
    }

    /// Finishes a connection, or gives up the attempt to connect.
    pub(crate) fn finish(&mut self, now: Instant, id: ConnectionId) {
        match self.status(id) {
            Some(Status { connected: false, lost: None, .. }) => self.transport.close(now, id),
            _ => self.transport.finish(now, id),
        }
    }

    /// Finishes a connection, even if its last handle is dropped before.
    pub(crate) fn finish_in_background(&mut self, now: Instant, id: ConnectionId) {
        self.finish(now, id);
        if let Some(slot) = find(&mut self.slots, id) {
            slot.handle = Handle::Dispensable;
        }
    }

    /// Notes that the last handle of a connection is gone.
    pub(crate) fn release(&mut self, now: Instant, id: ConnectionId) {
        match find(&mut self.slots, id) {
            Some(slot) if slot.handle == Handle::Dispensable && !slot.status.is_over() => {
                slot.handle = Handle::Dropped;
                self.throw_away_input(now, id);
                if let Some(eldest) = self.lingering.add(id) {
                    self.forget(now, eldest);
                }
            }
            _ => self.forget(now, id),
        }
    }

    /// Discards input without a reader, so that the peer does not fill memory with it.
    fn throw_away_input(&mut self, now: Instant, id: ConnectionId) {
        let mut scratch = [0; THROWN_AWAY];
        while matches!(self.transport.read(now, id, &mut scratch), Ok(Read::Data(1..))) {}
    }

    /// Forgets a connection here and in the transport.
    fn forget(&mut self, now: Instant, id: ConnectionId) {
        self.lingering.remove(id);
        if let Some(slot) = find(&mut self.slots, id) {
            slot.silence(&mut self.alarms);
            self.slots[id.slot()] = None;
            self.connections -= 1;
        }
        self.transport.release(now, id);
        self.leaving.push_back(id);
    }

    /// Whether the peers of all connections that this side closed have been told.
    pub(super) fn all_left(&self) -> bool {
        let undelivered = self.channel_requests.as_ref().is_some_and(RequestQueue::is_undelivered);
        self.leaving.is_empty() && self.lingering.is_empty() && !undelivered
    }

    /// Removes the connections whose peers have been told, oldest first, since no close lasts long. Call it after
    /// each transmit.
    pub(super) fn note_closed(&mut self) {
        while let Some(&id) = self.leaving.front()
            && !self.transport.is_closing(id)
        {
            self.leaving.pop_front();
        }
        if self.all_left() {
            self.closing_connections = None;
        } else {
            self.closing_connections.get_or_insert_with(Closing::of_connections);
        }
    }

    /// Forgets all closing connections and closes the port for channels, because the driver thread is gone.
    pub(super) fn end_closing(&mut self) {
        self.channel_requests = None;
        self.leaving.clear();
        self.lingering = Lingering::default();
        self.closing_connections = None;
    }

    /// Lets peers connect. The transport limits the connections that wait to be accepted.
    ///
    /// # Errors
    /// They may already. Or the transport needs channels, and another program has the TCP port.
    pub(crate) fn open_acceptor(&mut self) -> Result<(), Error> {
        if self.accepting.open {
            return Err(Error::AlreadyListening);
        }
        if let Some(queue) = &mut self.channel_requests {
            queue.open_port().map_err(|source| Error::BindTcp { address: queue.port().address(), source })?;
        }
        self.accepting.open = true;
        Ok(())
    }

    /// The callers of other programs on the TCP port, from now on until the port closes. None, if the transport needs no
    /// channels.
    pub(crate) fn other_clients(&mut self) -> Option<Receiver<OtherClient>> {
        self.channel_requests.as_mut().map(RequestQueue::other_clients)
    }

    /// Refuses further connections and releases those not accepted yet.
    pub(crate) fn close_acceptor(&mut self, now: Instant) {
        self.accepting.open = false;
        if let Some(queue) = &mut self.channel_requests {
            queue.close_port();
        }
        for id in std::mem::take(&mut self.accepting.queue) {
            self.release(now, id);
        }
        self.accepting.waiters.wake(&mut self.wakeups);
    }

    /// The connection that has waited longest to be accepted.
    pub(crate) fn next_accepted(&mut self) -> Option<ConnectionId> {
        self.accepting.queue.pop_front()
    }

    /// The connection that has waited shortest to be accepted.
    pub(crate) fn newest_accepted(&mut self) -> Option<ConnectionId> {
        self.accepting.queue.pop_back()
    }

    /// Whether peers can connect, and whether a connection waits to be accepted.
    pub(crate) fn acceptor(&self) -> (bool, bool) {
        (self.accepting.open, !self.accepting.queue.is_empty())
    }

    /// Whether others of the connection than who waits at `place` wait for news of a stream: threads whose waits are brief, or tasks.
    pub(super) fn has_other_waiters(&mut self, place: WaitPlace) -> bool {
        let (WaitPlace::Read(id) | WaitPlace::Write(id) | WaitPlace::Change(id)) = place else { return false };
        let waits = |queue: &WaitQueue| queue.is_awaited();
        find(&mut self.slots, id)
            .is_some_and(|slot| waits(&slot.readable) || waits(&slot.writable) || waits(&slot.changed))
    }

    /// The wait queue of a place. `None` if the connection's handle is gone.
    pub(crate) fn wait_queue(&mut self, place: WaitPlace) -> Option<&mut WaitQueue> {
        match place {
            WaitPlace::Read(id) => Some(&mut find(&mut self.slots, id)?.readable),
            WaitPlace::Write(id) => Some(&mut find(&mut self.slots, id)?.writable),
            WaitPlace::Change(id) => Some(&mut find(&mut self.slots, id)?.changed),
            WaitPlace::Accept => Some(&mut self.accepting.waiters),
        }
    }

    /// Has the waiters for a change of the connection check again at `time`, unless it changes before.
    pub(crate) fn look_again_at(&mut self, time: Instant, id: ConnectionId) {
        if let Some(slot) = find(&mut self.slots, id) {
            slot.silence(&mut self.alarms);
            slot.alarm = Some(time);
            self.alarms.insert((time, id));
        }
    }

    /// The time of the next alarm.
    pub(super) fn next_alarm(&self) -> Option<Instant> {
        self.alarms.first().map(|(time, _)| *time)
    }

    /// Wakes the waiters of due alarms.
    pub(super) fn wake_alarms(&mut self, now: Instant) {
        while self.next_alarm().is_some_and(|time| time <= now) {
            if let Some((_, id)) = self.alarms.pop_first()
                && let Some(slot) = find(&mut self.slots, id)
            {
                slot.alarm = None;
                slot.changed.wake(&mut self.wakeups);
            }
        }
    }

    /// Wakes the readers that have waited long enough for more data. The driver thread calls it in each access.
    pub(super) fn wake_readers(&mut self, now: Instant) {
        let Self { wake_coalescing, transport, slots, wakeups, .. } = self;
        let readable = |id| transport.readable(id);
        wake_coalescing.release(now, readable, |id| {
            if let Some(slot) = find(slots, id) {
                slot.readable.wake(wakeups);
            }
        });
    }

    /// Wakes all waiters, after an event that the transport does not know of.
    pub(crate) fn wake_all(&mut self) {
        for slot in self.slots.iter_mut().flatten() {
            slot.wake_all(&mut self.wakeups);
        }
        self.accepting.waiters.wake(&mut self.wakeups);
    }

    /// Takes the transport's requests for channels.
    pub(super) fn take_channel_requests(&mut self, now: Instant) {
        if let Some(queue) = &mut self.channel_requests {
            queue.collect(now, &mut self.transport);
        }
    }

    /// Takes the transport's events and wakes their waiters.
    pub(super) fn take_events(&mut self, now: Instant) {
        while let Some(event) = self.transport.poll_event() {
            match event {
                Event::Accepted(id) => self.on_accepted(now, id),
                _ => self.on_event(now, event),
            }
        }
    }

    fn on_accepted(&mut self, now: Instant, id: ConnectionId) {
        if !self.accepting.open {
            self.transport.release(now, id);
            self.leaving.push_back(id);
            return;
        }
        self.put(id, Status { connected: true, ..Status::default() });
        self.accepting.queue.push_back(id);
        self.accepting.waiters.wake(&mut self.wakeups);
    }

    fn on_event(&mut self, now: Instant, event: Event) {
        let id = event.connection();
        let Some(slot) = find(&mut self.slots, id) else { return };
        if slot.handle == Handle::Dropped {
            return match event {
                Event::Finished(_) | Event::Closed(..) => self.forget(now, id),
                _ => self.throw_away_input(now, id),
            };
        }
        match event {
            Event::Readable(_) if self.wake_coalescing.hold(now, id, self.transport.readable(id)) => {}
            Event::Readable(_) => slot.readable.wake(&mut self.wakeups),
            Event::Writable(_) => slot.writable.wake(&mut self.wakeups),
            Event::Connected(_) => {
                slot.status.connected = true;
                slot.silence(&mut self.alarms);
                slot.changed.wake(&mut self.wakeups);
            }
            Event::SendingFinished(_) => {
                slot.status.sent = true;
                slot.changed.wake(&mut self.wakeups);
            }
            Event::Finished(_) => {
                slot.status.finished = true;
                self.leaving.push_back(id);
                slot.changed.wake(&mut self.wakeups);
            }
            Event::Closed(_, reason) => {
                slot.status.lost = Some(reason);
                self.leaving.push_back(id);
                slot.silence(&mut self.alarms);
                slot.wake_all(&mut self.wakeups);
            }
            // This driver does not know the kind of event, so it wakes all waiters of the connection.
            _ => slot.wake_all(&mut self.wakeups),
        }
    }

    fn put(&mut self, id: ConnectionId, status: Status) {
        if self.slots.len() <= id.slot() {
            self.slots.resize_with(id.slot() + 1, || None);
        }
        let (readable, writable, changed) = (WaitQueue::default(), WaitQueue::default(), WaitQueue::default());
        self.connections += usize::from(self.slots[id.slot()].is_none());
        self.slots[id.slot()] =
            Some(Slot { id, status, handle: Handle::Held, readable, writable, changed, alarm: None });
    }
}

impl Status {
    /// Whether no data is left to deliver.
    const fn is_over(self) -> bool {
        self.finished || self.lost.is_some()
    }
}

impl Slot {
    fn silence(&mut self, alarms: &mut BTreeSet<(Instant, ConnectionId)>) {
        if let Some(time) = self.alarm.take() {
            alarms.remove(&(time, self.id));
        }
    }

    fn wake_all(&mut self, wakeups: &mut Wakeups) {
        self.readable.wake(wakeups);
        self.writable.wake(wakeups);
        self.changed.wake(wakeups);
    }
}

fn find(slots: &mut [Option<Slot>], id: ConnectionId) -> Option<&mut Slot> {
    slots.get_mut(id.slot())?.as_mut().filter(|slot| slot.id == id)
}
