//! What the handles and the threads of a stream share: its connections, its end, its figures.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use farhaul::{ConnectionLost, Error, Rate, Stats, Stream};
use farhaul_udp::Clock;
use farhaul_units::Instant;

use super::first::First;
use super::incoming::Incoming;
use super::outgoing::Outgoing;

/// What the handles and the threads of a stream share.
pub(crate) struct Shared {
    pub(super) first: First,
    /// The last figures of it, once it is gone.
    pub(super) first_stats: Mutex<Stats>,
    pub(super) clock: Clock,
    /// Whether flows may join.
    pub(super) is_open: bool,
    /// Whether flows have joined, so that the peer may send on them.
    pub(super) is_bonded: AtomicBool,
    pub(super) is_cancelled: AtomicBool,
    /// This side ends the stream, or has.
    pub(super) is_closing: AtomicBool,
    /// Bytes before those of the stream itself.
    pub(super) opening: AtomicU64,
    pub(super) timeouts: Mutex<Timeouts>,
    sending: Mutex<SendingRules>,
    pub(super) flows: Mutex<Vec<Arc<Flow>>>,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Timeouts {
    pub(super) read: Option<Duration>,
    pub(super) write: Option<Duration>,
}

/// What all flows obey as they send.
#[derive(Default)]
struct SendingRules {
    /// The cap on all of them together; `None` while it is that of the first connection.
    cap: Option<Option<Rate>>,
    /// The first connection has sent everything that it was given.
    is_first_done: bool,
    /// The controller that replaces that of each.
    controller: Option<String>,
}

/// A flow that has joined.
pub(super) struct Flow {
    pub(super) stream: Stream,
    /// The peer has taken it as well, so it may carry bytes. A side that accepts knows that at once.
    pub(super) is_confirmed: AtomicBool,
    /// Its connection is over without the end of the stream.
    pub(super) is_lost: AtomicBool,
    /// It was given bytes of the stream, or brought some, which are lost with it.
    pub(super) has_sent: AtomicBool,
    pub(super) has_brought: AtomicBool,
    /// The last figures, once the connection is gone.
    pub(super) stats: Mutex<Stats>,
}

/// Why a stream broke, for each call from then on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cause {
    Lost(ConnectionLost),
    Cancelled,
    Finished,
    Stopped,
}

impl From<&Error> for Cause {
    fn from(error: &Error) -> Self {
        match error {
            Error::Lost(lost) => Self::Lost(*lost),
            Error::Cancelled => Self::Cancelled,
            Error::Finished => Self::Finished,
            Error::DriverStopped => Self::Stopped,
            _ => Self::Lost(ConnectionLost::Aborted),
        }
    }
}

impl From<Cause> for Error {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Lost(lost) => Self::Lost(lost),
            Cause::Cancelled => Self::Cancelled,
            Cause::Finished => Self::Finished,
            Cause::Stopped => Self::DriverStopped,
        }
    }
}

impl Flow {
    /// Whether its loss is that of the stream. A flow without bytes may go, also because the peer never took it. If the peer had given it
    /// some, the peer finds the loss.
    pub(super) fn has_bytes(&self) -> bool {
        self.has_sent.load(Ordering::Acquire) || self.has_brought.load(Ordering::Acquire)
    }

    /// Whether the peer waits for its end.
    fn is_awaited(&self) -> bool {
        self.is_confirmed.load(Ordering::Acquire) || self.has_bytes()
    }

    pub(super) fn stats(&self) -> Stats {
        last_stats(self.stream.stats(), &self.stats)
    }
}

impl Shared {
    pub(super) fn new(first: First, is_open: bool, received: u64) -> Self {
        Self {
            first,
            first_stats: Mutex::default(),
            clock: Clock::start(),
            is_open,
            is_bonded: AtomicBool::new(false),
            is_cancelled: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            opening: AtomicU64::new(0),
            timeouts: Mutex::default(),
            sending: Mutex::default(),
            flows: Mutex::default(),
            outgoing: Outgoing::default(),
            incoming: Incoming::after(received),
        }
    }

    pub(super) fn is_bonded(&self) -> bool {
        self.is_bonded.load(Ordering::Acquire)
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Whether a flow would still be of use.
    pub(super) fn needs_flows(&self) -> bool {
        !(self.is_closing() || self.outgoing.has_ended() && self.incoming.has_all())
    }

    /// No flow joins any more. Returns whether one has.
    pub(super) fn begin_closing(&self) -> bool {
        let _flows = lock(&self.flows);
        self.is_closing.store(true, Ordering::Release);
        self.is_bonded()
    }

    pub(super) fn joined(&self) -> Vec<Arc<Flow>> {
        lock(&self.flows).clone()
    }

    pub(super) fn deadline(&self, timeout: Option<Duration>) -> Option<Instant> {
        timeout.map(|timeout| self.clock.now() + timeout)
    }

    pub(super) fn attach(self: &Arc<Self>, stream: Stream, early: Vec<u8>, is_confirmed: bool) -> Result<(), Error> {
        let flow = Arc::new(Flow {
            stream,
            is_confirmed: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            has_sent: AtomicBool::new(false),
            has_brought: AtomicBool::new(false),
            stats: Mutex::default(),
        });
        let mut flows = lock(&self.flows);
        if self.is_closing() {
            flow.stream.close();
            return Err(Error::Finished);
        }
        flow.stream.set_read_timeout(None);
        flow.stream.set_write_timeout(None);
        if self.is_cancelled.load(Ordering::Acquire) {
            flow.stream.canceller().cancel();
        }
        let begins = !self.is_bonded();
        self.incoming.add_readers(1 + usize::from(begins));
        self.outgoing.add_writer();
        flows.push(Arc::clone(&flow));
        self.is_bonded.store(true, Ordering::Release);
        drop(flows);
        if begins {
            self.first.rest();
        }
        if is_confirmed {
            self.confirm(&flow);
        }
        let (reads, writes) = (Arc::clone(&flow), Arc::clone(&flow));
        let spawned = self
            .keep_rules(&flow)
            .and_then(|()| self.spawn("flow:in", move |shared| shared.read_flow(&reads, early)))
            .and_then(|()| self.spawn("flow:out", move |shared| shared.write_flow(&writes)))
            .and_then(|()| if begins { self.spawn("flow:first", |shared| shared.read_first()) } else { Ok(()) });
        spawned.inspect_err(|error| self.fail(Cause::from(error)))
    }

    /// The peer has taken a flow. From now on, flows carry what this side sends.
    pub(super) fn confirm(&self, flow: &Flow) {
        flow.is_confirmed.store(true, Ordering::Release);
        let mut sending = lock(&self.sending);
        let cap = *sending.cap.get_or_insert_with(|| self.first.stats().ok().and_then(|stats| stats.max_rate));
        if cap.is_some() {
            // A connection that is gone sends nothing.
            let _ = self.share_cap(&sending);
        }
        drop(sending);
        self.outgoing.carry_by_flows();
    }

    /// The cap on all connections together, which has `first` for its first connection.
    pub(super) fn cap(&self, first: Option<Rate>) -> Option<Rate> {
        lock(&self.sending).cap.unwrap_or(first)
    }

    /// Whether the first connection still needs the cap: what it was given comes before all blocks.
    pub(super) fn has_first_the_cap(&self) -> bool {
        let mut sending = lock(&self.sending);
        if sending.is_first_done || sending.cap.flatten().is_none() {
            return false;
        }
        let has_rest = |stats: Stats| stats.totals.bytes_acked < stats.totals.bytes_written;
        sending.is_first_done = !self.first.stats().is_ok_and(has_rest);
        !sending.is_first_done
    }

    fn spawn(self: &Arc<Self>, name: &str, run: impl FnOnce(&Self) + Send + 'static) -> Result<(), Error> {
        let shared = Arc::clone(self);
        let spawned = thread::Builder::new().name(name.into()).spawn(move || run(&shared));
        spawned.map(drop).map_err(|source| Error::System { what: "a thread", source })
    }

    /// The stream is broken: every call ends, and the peer learns it on every flow.
    pub(super) fn fail(&self, cause: Cause) {
        self.incoming.fail(cause);
        // After a cancellation, last words may still leave.
        if matches!(cause, Cause::Cancelled) || self.is_closing() {
            return;
        }
        self.outgoing.fail(cause);
        self.first.abort();
        self.joined().iter().for_each(|flow| flow.stream.abort());
    }

    pub(super) fn set_max_rate(&self, rate: Option<Rate>) -> Result<(), Error> {
        self.first.set_max_rate(rate)?;
        let mut sending = lock(&self.sending);
        sending.cap = Some(rate);
        self.share_cap(&sending)
    }

    pub(super) fn set_controller(&self, name: &str) -> Result<(), Error> {
        self.first.set_controller(name)?;
        lock(&self.sending).controller = Some(name.to_owned());
        self.joined().iter().try_for_each(|flow| flow.stream.set_controller(name))
    }

    /// A new flow is controlled as the others are.
    fn keep_rules(&self, flow: &Flow) -> Result<(), Error> {
        let sending = lock(&self.sending);
        sending.controller.as_ref().map_or(Ok(()), |name| flow.stream.set_controller(name))
    }

    /// Shares the cap among the flows.
    fn share_cap(&self, sending: &SendingRules) -> Result<(), Error> {
        let mut flows = self.joined();
        flows.retain(|flow| flow.is_confirmed.load(Ordering::Acquire));
        let sharers = flows.len().max(1) as u64;
        let share =
            sending.cap.flatten().map(|cap| Rate::from_bits_per_second((cap.bits_per_second() / sharers).max(1)));
        flows.iter().try_for_each(|flow| flow.stream.set_max_rate(share))
    }

    pub(super) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
        self.first.cancel();
        self.joined().iter().for_each(|flow| flow.stream.canceller().cancel());
        self.outgoing.notify();
        self.incoming.notify();
    }

    /// Ends all connections in this way, and the threads with them.
    pub(super) fn leave(&self, end: impl Fn(&First)) {
        self.begin_closing();
        self.outgoing.leave();
        self.incoming.leave();
        end(&self.first);
        self.joined().iter().for_each(|flow| end(&flow.stream.clone().into()));
    }

    pub(super) fn wait_until_closed(&self) -> Result<(), Error> {
        for flow in self.joined().iter().filter(|flow| flow.is_awaited()) {
            match flow.stream.wait_until_closed() {
                Err(error) if flow.has_sent.load(Ordering::Acquire) || matches!(error, Error::Cancelled) => {
                    return Err(error);
                }
                _ => {}
            }
        }
        self.first.wait_until_closed()
    }

    /// The figures of all connections as one.
    pub(super) fn sum(&self, first: Stats) -> Stats {
        let flows = self.joined();
        let further: Vec<Stats> = flows.iter().map(|flow| flow.stats()).collect();
        // What ssh carried has figures of TCP, which are none of packets.
        let mut sum = match (&self.first, further.first()) {
            (First::Ssh(..), Some(flow)) => *flow,
            _ => first,
        };
        (sum.elapsed, sum.totals, sum.in_flight, sum.memory) =
            (first.elapsed, first.totals, first.in_flight, first.memory);
        for stats in &further {
            let (all, totals) = (&mut sum.totals, &stats.totals);
            all.packets_sent += totals.packets_sent;
            all.packets_received += totals.packets_received;
            all.packets_lost_sending += totals.packets_lost_sending;
            all.packets_lost_receiving += totals.packets_lost_receiving;
            all.packets_retransmitted += totals.packets_retransmitted;
            all.packets_duplicate += totals.packets_duplicate;
            all.acks_sent += totals.acks_sent;
            all.acks_received += totals.acks_received;
            all.bytes_written += totals.bytes_written;
            all.bytes_acked += totals.bytes_acked;
            all.bytes_received += totals.bytes_received;
            all.bytes_read += totals.bytes_read;
            sum.in_flight += stats.in_flight;
            sum.memory += stats.memory;
        }
        // Those of the first connection are of the time before the flows.
        let mean = |of: fn(&Stats) -> Duration| {
            further.iter().map(of).sum::<Duration>() / u32::try_from(further.len()).unwrap_or(1).max(1)
        };
        sum.totals.send_duration += mean(|stats| stats.totals.send_duration);
        sum.totals.limited_by_application = mean(|stats| stats.totals.limited_by_application);
        sum.totals.limited_by_flow_window += mean(|stats| stats.totals.limited_by_flow_window);
        sum.totals.limited_by_congestion += mean(|stats| stats.totals.limited_by_congestion);
        sum.totals.limited_by_rate_cap += mean(|stats| stats.totals.limited_by_rate_cap);
        sum.totals.send_duration = sum.totals.send_duration.min(sum.elapsed);
        // Headers of blocks are no bytes of the stream, and what a flow without blocks has is none either.
        let pending = |stats: &Stats| stats.totals.bytes_written.saturating_sub(stats.totals.bytes_acked);
        let unacknowledged = pending(&first)
            + flows
                .iter()
                .zip(&further)
                .filter(|(flow, _)| flow.has_sent.load(Ordering::Acquire))
                .map(|(_, stats)| pending(stats))
                .sum::<u64>();
        sum.totals.bytes_acked = self.outgoing.taken().saturating_sub(unacknowledged);
        sum
    }
}

/// The figures of a connection, or the last ones of one that is gone.
pub(super) fn last_stats(stats: Result<Stats, Error>, last: &Mutex<Stats>) -> Stats {
    let mut last = lock(last);
    *last = stats.unwrap_or(*last);
    *last
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
