//! Both streams of an open connection, and what keeps them going. It conducts the parts.

use farhaul_units::{Duration, Instant};
use farhaul_wire::blast::{Frame, Tag};

use super::channel_liveness::ChannelLiveness;
use super::engine::{Feedback, Prefix, Protocol, Receiver, Sender, Setup, Transmission};
use super::frames::in_parts;
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::path_validation::PathValidation;
use farhaul_proto::endpoint::progress::Progress;
use farhaul_proto::endpoint::protocol;
use farhaul_proto::error::{ConnectionLost, PeerMisbehaved};
use farhaul_proto::stats::{Stats, Totals};
use farhaul_proto::transport::earliest;

/// Time between two reports of what arrived, while something arrives. A sender with an RTT of a few milliseconds still
/// gets a few per RTT, and a report costs one small TCP segment.
const REPORT_SPACING: Duration = Duration::from_millis(10);
/// Most echoes that wait. A peer has one question open at a time.
const MAX_ECHOES: usize = 8;

/// Both streams.
#[derive(Debug)]
pub(super) struct Duplex<P: Protocol> {
    pub(super) outgoing: Outgoing<P::Sender>,
    pub(super) incoming: Incoming<P::Receiver>,
    pub(super) path: PathValidation,
    pub(super) liveness: ChannelLiveness,
    progress: Progress,
    prefix: Prefix,
    /// Datagrams of the peer and their bytes so far.
    datagrams: u64,
    bytes: u64,
    /// When the datagrams of the present receive call reached this computer, and the last one that counts.
    arriving: Instant,
    last_arrived: Instant,
    /// Datagrams when the peer was last told.
    reported: u64,
    next_report: Instant,
    echoes: Vec<u64>,
    scratch: Vec<u8>,
    counts: Totals,
}

/// The facts of the opening.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    /// Whether this side called.
    pub(super) called: bool,
    /// Most bytes of a datagram, tag included.
    pub(super) datagram: usize,
    /// The RTT of the channel's opening, if this side opened it.
    pub(super) round_trip: Option<Duration>,
    /// The tag of datagrams to the peer.
    pub(super) tag: Tag,
    /// The options in the peer's hello.
    pub(super) hello: &'a [u8],
}

impl<P: Protocol> Duplex<P> {
    /// Both engines, for a peer whose hello has come.
    ///
    /// # Errors
    /// The peer's hello has options that this side does not support.
    pub(super) fn new(
        options: &P::Options,
        facts: &Facts<'_>,
        protocol::Setup { config, rng, now }: protocol::Setup<'_>,
    ) -> Result<Self, PeerMisbehaved> {
        let liveness = ChannelLiveness::new(now, facts.round_trip, config.keep_alive, config.peer_timeout);
        let prefix = Prefix::Tag(facts.tag);
        let (datagram, round_trip) = (facts.datagram, liveness.rtt.smoothed());
        // No engine draws. The seeds of what comes after depend on the place of these two.
        let _ = (rng.fork(), rng.fork());
        let setup = || Setup { config, datagram, prefix, round_trip, now };
        let sender = P::sender(options, setup());
        let receiver = P::receiver(options, facts.hello, setup())?;
        Ok(Self {
            // Both sides begin with the same credit, which needs no record.
            outgoing: Outgoing::new(sender, FIRST_CREDIT, config.send_buffer, datagram),
            incoming: Incoming::new(receiver, config.recv_buffer.max(FIRST_CREDIT), FIRST_CREDIT),
            path: PathValidation::new(facts.called, now),
            liveness,
            progress: Progress::new(now, config.stall_timeout, config.min_progress),
            prefix,
            datagrams: 0,
            bytes: 0,
            arriving: now,
            last_arrived: now,
            reported: 0,
            next_report: now,
            echoes: Vec::new(),
            scratch: Vec::new(),
            counts: Totals::default(),
        })
    }

    // ---- datagrams ----

    /// The next datagrams reached this computer at `arrived`.
    pub(super) const fn begin_batch(&mut self, arrived: Instant) {
        self.arriving = arrived;
    }

    /// Takes a datagram of the peer, without the tag. Returns false if no sender of this protocol sends it.
    pub(super) fn on_datagram(&mut self, now: Instant, body: &[u8]) -> bool {
        self.path.on_datagram();
        // A probe has no body.
        if body.is_empty() {
            return true;
        }
        self.last_arrived = self.last_arrived.max(self.arriving);
        self.datagrams += 1;
        self.bytes += body.len() as u64;
        let good = self.incoming.engine.handle_datagram(now, body);
        self.counts.packets_invalid += u64::from(!good);
        good
    }

    /// All datagrams of one receive call were handled.
    pub(super) fn end_batch(&mut self, now: Instant) {
        self.incoming.engine.end_batch(now);
    }

    /// Writes a probe into `out` if one is due.
    pub(super) fn poll_probe(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let due = self.path.poll_probe(now);
        if due {
            out.extend_from_slice(&self.prefix.bytes());
        }
        due
    }

    /// Datagrams that may leave now.
    pub(super) fn plan(&mut self, now: Instant) -> Option<Transmission> {
        self.outgoing.pass_on(now);
        if self.liveness.is_stalled(now) { None } else { self.outgoing.engine.plan(now) }
    }

    /// The datagrams of a plan.
    pub(super) fn emit<'a>(
        &'a mut self,
        now: Instant,
        plan: Transmission,
        scratch: &'a mut Vec<u8>,
    ) -> Option<(usize, &'a [u8])> {
        self.path.on_sent(now);
        self.outgoing.engine.emit(now, plan, scratch)
    }

    // ---- the channel ----

    /// A frame arrived, not the peer's last.
    ///
    /// # Errors
    /// No honest peer sends it.
    pub(super) fn on_frame(&mut self, now: Instant, frame: &Frame<'_>) -> Result<(), PeerMisbehaved> {
        match *frame {
            Frame::Inline(bytes) => self.incoming.on_inline(bytes),
            Frame::Bulk(bytes) => self.incoming.on_bulk(bytes),
            Frame::Forward(bytes) => self.incoming.engine.handle_control(now, bytes),
            Frame::Backward(bytes) => self.outgoing.engine.handle_control(now, bytes),
            Frame::Grant(offset) => {
                self.outgoing.on_grant(offset);
                Ok(())
            }
            Frame::Delivered(offset) => self.on_delivered(now, offset),
            Frame::Feedback { datagrams, bytes, clock } => {
                let (clock, path) = (Duration::from_micros(clock), self.liveness.round_trips());
                self.outgoing.engine.on_feedback(now, &Feedback { datagrams, bytes, clock, path });
                Ok(())
            }
            Frame::PathOpen => {
                self.path.on_open();
                Ok(())
            }
            Frame::Ping(number) => {
                if self.echoes.len() < MAX_ECHOES {
                    self.echoes.push(number);
                }
                Ok(())
            }
            Frame::Echo(number) => {
                self.on_echo(now, number);
                Ok(())
            }
            Frame::End | Frame::Abort(_) => Ok(()),
        }
    }

    fn on_delivered(&mut self, now: Instant, offset: u64) -> Result<(), PeerMisbehaved> {
        let Some(news) = self.outgoing.on_delivered(now, offset) else {
            return Err(PeerMisbehaved::out_of_range("the delivered offset", offset, "what was written"));
        };
        self.counts.acks_received += 1;
        if news > 0 {
            self.progress.on_acknowledged(now, news);
        }
        Ok(())
    }

    fn on_echo(&mut self, now: Instant, number: u64) {
        if self.liveness.on_echo(now, number).is_some() {
            let round_trip = self.liveness.rtt.smoothed();
            self.outgoing.engine.set_round_trip(round_trip);
            self.incoming.engine.set_round_trip(round_trip);
        }
    }

    /// Appends all frames that are due.
    pub(super) fn poll_frames(&mut self, now: Instant, out: &mut Vec<u8>) {
        for number in self.echoes.drain(..) {
            Frame::Echo(number).encode(out);
        }
        if self.path.poll_told() {
            Frame::PathOpen.encode(out);
        }
        if let Some(number) = self.liveness.poll_ping(now, self.is_busy()) {
            Frame::Ping(number).encode(out);
        }
        self.incoming.poll_grant(out);
        self.scratch.clear();
        self.incoming.engine.poll_control(now, &mut self.scratch);
        in_parts(&self.scratch, |part| Frame::Backward(part).encode(out));
        self.report(now, out);
        self.outgoing.poll_frames(now, &mut self.scratch, out);
    }

    /// Tells the peer what arrived, at once if nothing is missing.
    fn report(&mut self, now: Instant, out: &mut Vec<u8>) {
        let due = now >= self.next_report;
        if self.incoming.has_news() && (due || self.incoming.is_complete()) {
            self.incoming.tell(out);
            self.counts.acks_sent += 1;
            self.next_report = now + REPORT_SPACING;
        }
        if due && self.datagrams > self.reported {
            self.reported = self.datagrams;
            // The kernel's time of the last arrival. A program that did not run for a while counts late, and the sender
            // must not take that for a slow path.
            let clock = u64::try_from((self.last_arrived - Instant::ZERO).as_micros()).unwrap_or(u64::MAX);
            Frame::Feedback { datagrams: self.datagrams, bytes: self.bytes, clock }.encode(out);
            self.next_report = now + REPORT_SPACING;
        }
    }

    /// Whether data moves in either direction.
    fn is_busy(&self) -> bool {
        !self.outgoing.is_delivered() || !self.incoming.is_complete()
    }

    // ---- time ----

    /// Fires due timers. A peer that never reads makes no progress while the application waits for room (attack B10).
    ///
    /// # Errors
    /// The peer is to be given up.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Result<(), ConnectionLost> {
        self.outgoing.engine.handle_timeout(now);
        self.incoming.engine.handle_timeout(now);
        if self.path.is_blocked(now) {
            return Err(ConnectionLost::UdpBlocked(super::path_validation::PATIENCE));
        }
        if let Some(time) = self.liveness.is_silent(now) {
            return Err(ConnectionLost::PeerSilent(time));
        }
        if self.outgoing.is_idle() {
            self.progress.restart(now);
        } else if let Some(reason) = self.progress.check(now) {
            return Err(reason);
        }
        Ok(())
    }

    /// This computer was suspended (attack B20).
    pub(super) fn on_suspended(&mut self, now: Instant, gap: Duration) {
        self.path.on_suspended(gap);
        self.liveness.on_suspended(now);
        self.progress.restart(now);
        self.outgoing.engine.on_suspended(now, gap);
        self.incoming.engine.on_suspended(now, gap);
    }

    /// When to look again. `ready` is whether the channel takes bytes.
    pub(super) fn deadline(&self, now: Instant, ready: bool) -> Option<Instant> {
        let news = self.incoming.has_news() || self.datagrams > self.reported;
        let sends = self.path.can_send() && !self.liveness.is_stalled(now);
        [
            Some(self.path.deadline()),
            Some(self.liveness.deadline(self.is_busy(), ready)),
            self.progress.deadline().filter(|_| !self.outgoing.is_idle()),
            self.outgoing.engine.deadline().filter(|_| sends),
            self.incoming.engine.deadline(),
            Some(self.next_report).filter(|_| ready && news),
        ]
        .into_iter()
        .fold(None, earliest)
    }

    // ---- commands ----

    /// The application writes data. If nothing was outstanding, the time without progress starts now.
    pub(super) fn write(&mut self, now: Instant, data: &[u8]) -> usize {
        if self.outgoing.is_delivered() {
            self.progress.restart(now);
        }
        let taken = self.outgoing.write(now, data);
        self.counts.bytes_written += taken as u64;
        taken
    }

    /// From now on, `linger` without progress ends the connection.
    pub(super) fn begin_linger(&mut self, now: Instant, linger: Duration) {
        self.progress.set_patience(now, linger);
    }

    pub(super) fn fill_stats(&self, now: Instant, stats: &mut Stats) {
        stats.totals = self.counts;
        stats.silence = Some(self.liveness.silence(now));
        stats.rtt = self.liveness.rtt.smoothed();
        stats.rtt_var = self.liveness.rtt.variation();
        stats.min_rtt = self.liveness.rtt.min().unwrap_or_default();
        self.outgoing.engine.fill_stats(now, stats);
        self.incoming.engine.fill_stats(now, stats);
        // An engine may count acknowledgements of its own; those of the connection are the full ones.
        stats.totals.acks_sent = self.counts.acks_sent;
        stats.totals.acks_received = self.counts.acks_received;
        stats.totals.bytes_written = self.counts.bytes_written;
        stats.totals.bytes_acked = self.outgoing.delivered();
        stats.totals.bytes_received = self.incoming.received();
        stats.totals.bytes_read = self.incoming.total_read();
        stats.memory += self.incoming.inline_memory() as u64;
    }
}

/// The credit that both sides begin with, bytes. Each side sends a larger grant in its first frames.
const FIRST_CREDIT: u64 = 64 << 10;
