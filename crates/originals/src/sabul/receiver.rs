//! The receiving side: it opens the channel, names its port, and reads until the channel ends.

use farhaul_units::{Duration, Instant};
use farhaul_wire::sabul::{OPTIONS_LEN, Options as Block, Record};

use super::{SabulError, setup};
use crate::session::{DatagramOutcome, OriginalSession};
use farhaul_proto::Config;
use farhaul_proto::channel::ChannelEnd;
use farhaul_proto::stats::Stats;
use farhaul_protocols::blast::engine::Receiver as _;
use farhaul_protocols::sabul::receiver::{Receiver as Engine, Rules};
use farhaul_protocols::sabul::{Generation, Repairs};

/// Time between two signs of life while the host still stores what has arrived. The original has its SYN interval of 10 ms.
/// Senders give up after many seconds.
const SIGN_INTERVAL: Duration = Duration::from_secs(1);

/// How a stream ended. No size travels, so none proves that it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The sender ended the channel in order, and all that arrived had been acknowledged.
    Closed,
    /// The sender ended the channel in order, but before it could know that all had arrived. Somebody may have stopped it.
    ClosedEarly,
    /// The channel broke when everything that arrived was acknowledged. An original sender that leaves while SYN records
    /// are in flight to it causes this. So does a network that fails.
    Broken,
}

/// A session that receives from an original sender. It begins when the channel to the sender is open.
#[derive(Debug)]
pub struct Receiver {
    engine: Engine,
    phase: Phase,
    /// The port that the sender's datagrams come from, by the first of them.
    from_port: Option<u16>,
    block: [u8; OPTIONS_LEN],
    /// Bytes of the echo that came.
    echoed: usize,
    opened: Instant,
    opening_time: Duration,
    peer_timeout: Duration,
    /// When the last valid datagram came.
    heard: Instant,
    end: Option<StreamEnd>,
    /// When the sender, which waits for this side's end, must hear that this side is still there.
    next_sign: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The options must be sent.
    Opening,
    /// Their echo is awaited, since this time.
    Echo(Instant),
    Data,
    Over,
}

impl Receiver {
    /// A session over a channel to a sender that has just been opened. Datagrams come to this side's `udp_port`.
    pub fn new(config: &Config, udp_port: u16, now: Instant) -> Self {
        let block = Block::new(udp_port);
        let rules = Rules { window: block.window, syn: Generation::March2003.syn(), repairs: Repairs::Original };
        Self {
            engine: Engine::new(&setup(config, now), rules),
            phase: Phase::Opening,
            from_port: None,
            block: block.encode(),
            echoed: 0,
            opened: now,
            opening_time: config.connect_timeout,
            peer_timeout: config.peer_timeout,
            heard: now,
            end: None,
            next_sign: None,
        }
    }

    // ---- the application's side ----

    /// Bytes in order that [`read`](Self::read) would return.
    pub fn available(&self) -> usize {
        self.engine.available()
    }

    /// Moves bytes in order into `out`, and returns their number.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        self.engine.read(out)
    }

    // ---- facts ----

    /// Whether the session is over: [`end`](Self::end) says how, unless it failed. Bytes may still wait. Until the
    /// host has stored them and ends the channel, records tell the sender that this side is alive.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// How the stream ended.
    pub const fn end(&self) -> Option<StreamEnd> {
        self.end
    }

    /// Counters and estimates.
    pub fn stats(&self, now: Instant) -> Stats {
        let mut stats = Stats::default();
        stats.elapsed = now - self.opened;
        self.engine.fill_stats(now, &mut stats);
        stats
    }

    fn fail(&mut self, error: SabulError) -> Result<(), SabulError> {
        self.phase = Phase::Over;
        Err(error)
    }
}

impl OriginalSession for Receiver {
    type Fault = SabulError;

    fn handle_channel(&mut self, now: Instant, bytes: &[u8]) -> Result<(), SabulError> {
        match self.phase {
            Phase::Opening => self.fail(SabulError::EchoDiffers),
            Phase::Echo(since) => {
                let (head, rest) = bytes.split_at(bytes.len().min(OPTIONS_LEN - self.echoed));
                if !self.block[self.echoed..].starts_with(head) {
                    return self.fail(SabulError::EchoDiffers);
                }
                self.echoed += head.len();
                if self.echoed == OPTIONS_LEN {
                    self.engine.set_round_trip(now - since);
                    self.phase = Phase::Data;
                    self.heard = now;
                }
                if rest.is_empty() { Ok(()) } else { self.fail(SabulError::SenderSpeaks(rest.len())) }
            }
            Phase::Data if !bytes.is_empty() => self.fail(SabulError::SenderSpeaks(bytes.len())),
            Phase::Data | Phase::Over => Ok(()),
        }
    }

    fn channel_ended(&mut self, now: Instant, end: ChannelEnd) -> Result<(), SabulError> {
        match self.phase {
            Phase::Over => return Ok(()),
            Phase::Opening | Phase::Echo(_) => return self.fail(SabulError::Opening(end)),
            Phase::Data if self.engine.has_gap() => return self.fail(SabulError::SenderLeft(self.engine.missing())),
            Phase::Data => {}
        }
        let end = match (end, self.engine.is_acknowledged()) {
            (ChannelEnd::Finished, true) => StreamEnd::Closed,
            (ChannelEnd::Finished, false) => StreamEnd::ClosedEarly,
            (_, true) => StreamEnd::Broken,
            (_, false) => return self.fail(SabulError::ChannelBroke),
        };
        self.next_sign = (end != StreamEnd::Broken).then(|| now + SIGN_INTERVAL);
        self.end = Some(end);
        self.phase = Phase::Over;
        Ok(())
    }

    fn poll_channel(&mut self, now: Instant, out: &mut Vec<u8>) {
        match self.phase {
            Phase::Opening => {
                out.extend_from_slice(&self.block);
                self.phase = Phase::Echo(now);
            }
            Phase::Data => self.engine.poll_control(now, out),
            Phase::Over if self.next_sign.is_some_and(|at| now >= at) => {
                Record::Syn(0).encode(out);
                self.next_sign = Some(now + SIGN_INTERVAL);
            }
            Phase::Echo(_) | Phase::Over => {}
        }
    }

    fn peer_port(&self) -> Option<u16> {
        self.from_port
    }

    fn receives(&self) -> bool {
        !self.is_over()
    }

    fn handle_datagram<'d>(&mut self, now: Instant, from_port: u16, datagram: &'d [u8]) -> DatagramOutcome<'d> {
        if matches!(self.phase, Phase::Opening | Phase::Over) {
            return DatagramOutcome::Foreign;
        }
        if self.engine.handle_datagram(now, datagram) {
            (self.from_port, self.heard) = (Some(from_port), now);
        } else {
            self.engine.state_mut().count_invalid();
        }
        DatagramOutcome::Taken
    }

    fn end_batch(&mut self, now: Instant) {
        self.engine.end_batch(now);
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), SabulError> {
        match self.phase {
            Phase::Echo(since) if now >= since + self.opening_time => self.fail(SabulError::NoEcho(self.opening_time)),
            // The channel of a host that is gone stays open.
            Phase::Data if now >= self.heard + self.peer_timeout => {
                self.fail(SabulError::PeerSilent(self.peer_timeout))
            }
            Phase::Data => {
                self.engine.handle_timeout(now);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Echo(since) => Some(since + self.opening_time),
            Phase::Data => {
                let silence = Some(self.heard + self.peer_timeout);
                [self.engine.deadline(), silence].into_iter().flatten().min()
            }
            Phase::Over => self.next_sign,
            Phase::Opening => None,
        }
    }
}
