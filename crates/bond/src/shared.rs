//! What the handles and the threads of a stream share: its connections, its end, its figures.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use farhaul::{Error, Rate, Stats, Stream};
use farhaul_udp::Clock;
use farhaul_units::Instant;

use crate::first::First;
use crate::flow::{Cause, Flow, lock};
use crate::incoming::Incoming;
use crate::outgoing::Outgoing;

/// Time in which the last blocks of a stream that finishes in the background get room in their flows.
pub(crate) const BACKGROUND: Duration = Duration::from_secs(1);

/// What the handles and the threads of a stream share.
pub(crate) struct Shared {
    pub(crate) first: First,
    /// The last figures of it, once it is gone.
    pub(crate) first_stats: Mutex<Stats>,
    pub(crate) clock: Clock,
    /// Whether flows may join.
    pub(crate) is_open: bool,
    /// Whether flows have joined, so that the peer may send on them.
    pub(crate) is_bonded: AtomicBool,
    pub(crate) is_cancelled: AtomicBool,
    /// This side ends the stream, or has.
    pub(crate) is_closing: AtomicBool,
    /// Bytes before those of the stream itself.
    pub(crate) offered: AtomicU64,
    pub(crate) timeouts: Mutex<Timeouts>,
    sending: Mutex<SendingRules>,
    pub(crate) flows: Mutex<Vec<Arc<Flow>>>,
    pub(crate) outgoing: Outgoing,
    pub(crate) incoming: Incoming,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Timeouts {
    pub(crate) read: Option<Duration>,
    pub(crate) write: Option<Duration>,
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

impl Shared {
    pub(crate) fn new(first: First, is_open: bool, received: u64) -> Self {
        Self {
            first,
            first_stats: Mutex::default(),
            clock: Clock::start(),
            is_open,
            is_bonded: AtomicBool::new(false),
            is_cancelled: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            offered: AtomicU64::new(0),
            timeouts: Mutex::default(),
            sending: Mutex::default(),
            flows: Mutex::default(),
            outgoing: Outgoing::default(),
            incoming: Incoming::after(received),
        }
    }

    pub(crate) fn is_bonded(&self) -> bool {
        self.is_bonded.load(Ordering::Acquire)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Whether a flow would still be of use.
    pub(crate) fn needs_flows(&self) -> bool {
        !(self.is_closing() || self.outgoing.has_ended() && self.incoming.has_all())
    }

    /// No flow joins any more. Returns whether one has.
    pub(crate) fn begin_closing(&self) -> bool {
        let _flows = lock(&self.flows);
        self.is_closing.store(true, Ordering::Release);
        self.is_bonded()
    }

    pub(crate) fn joined(&self) -> Vec<Arc<Flow>> {
        lock(&self.flows).clone()
    }

    pub(crate) fn deadline(&self, timeout: Option<Duration>) -> Option<Instant> {
        timeout.map(|timeout| self.clock.now() + timeout)
    }

    pub(crate) fn attach(self: &Arc<Self>, stream: Stream, early: Vec<u8>, is_confirmed: bool) -> Result<(), Error> {
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
    pub(crate) fn confirm(&self, flow: &Flow) {
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
    pub(crate) fn cap(&self, first: Option<Rate>) -> Option<Rate> {
        lock(&self.sending).cap.unwrap_or(first)
    }

    /// Whether the first connection still needs the cap: what it was given comes before all blocks.
    pub(crate) fn has_first_the_cap(&self) -> bool {
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
    pub(crate) fn fail(&self, cause: Cause) {
        self.incoming.fail(cause);
        // After a cancellation, last words may still leave.
        if matches!(cause, Cause::Cancelled) || self.is_closing() {
            return;
        }
        self.outgoing.fail(cause);
        self.first.abort();
        self.joined().iter().for_each(|flow| flow.stream.abort());
    }

    pub(crate) fn set_max_rate(&self, rate: Option<Rate>) -> Result<(), Error> {
        self.first.set_max_rate(rate)?;
        let mut sending = lock(&self.sending);
        sending.cap = Some(rate);
        self.share_cap(&sending)
    }

    pub(crate) fn set_controller(&self, name: &str) -> Result<(), Error> {
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

    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
        self.first.cancel();
        self.joined().iter().for_each(|flow| flow.stream.canceller().cancel());
        self.outgoing.notify();
        self.incoming.notify();
    }

    /// Ends all connections in this way, and the threads with them.
    pub(crate) fn leave(&self, end: impl Fn(&First)) {
        self.begin_closing();
        self.outgoing.leave();
        self.incoming.leave();
        end(&self.first);
        self.joined().iter().for_each(|flow| end(&flow.stream.clone().into()));
    }

    pub(crate) fn wait_until_closed(&self) -> Result<(), Error> {
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
    pub(crate) fn sum(&self, first: Stats) -> Stats {
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
            all.packets_dropped += totals.packets_dropped;
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
