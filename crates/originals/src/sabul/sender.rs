//! The sending side: it waits for a receiver, then sends until everything is acknowledged.

use farhaul_units::{Duration, Instant};
use farhaul_wire::sabul::{OPTIONS_LEN, Options as Block, OptionsError};

use super::{SabulError, setup};
use crate::session::OriginalSession;
use farhaul_proto::Config;
use farhaul_proto::channel::ChannelEnd;
use farhaul_proto::stats::Stats;
use farhaul_protocols::blast::engine::Sender as _;
use farhaul_protocols::sabul::sender::Sender as Engine;
use farhaul_protocols::sabul::{Options, Repairs};

/// Time without data after which a packet that is not full may leave. The original's sender makes full packets up to the
/// end of a file. So a source that is a scheduler's time slice late must not make a short one.
const IDLE: Duration = Duration::from_millis(100);

/// A session that sends to an original receiver. It begins when the receiver has opened the channel.
#[derive(Debug)]
pub struct Sender {
    engine: Engine,
    phase: Phase,
    opened: Instant,
    opening_time: Duration,
    peer_timeout: Duration,
    most_window: u32,
    /// The options, as far as they came.
    options: Vec<u8>,
    /// Their block may be half of one with words of 64 bits.
    may_have_64_bits: bool,
    peer_port: Option<u16>,
    /// Since when the application has nothing to write.
    idle: Option<Instant>,
    finished: bool,
    heard: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Options are awaited.
    Opening,
    /// They are complete, and must be returned.
    Echo,
    Data,
    /// Everything is acknowledged, and this side ends its direction of the channel. The receiver may still write what it
    /// holds, and dies of a reset meanwhile. It ends the channel when it is done (departure D312).
    Draining,
    /// The receiver has ended the channel, or an error did.
    Over,
}

impl Sender {
    /// A session over a channel that a receiver has just opened. [`Repairs`] has no effect: the receiver decides.
    pub fn new(config: &Config, options: &Options, now: Instant) -> Self {
        let options = Options { repairs: Repairs::Original, ..options.clone() };
        let window = options.window();
        let mut engine = Engine::new(&options, &setup(config, now), window);
        engine.suit_original_receiver();
        Self {
            engine,
            phase: Phase::Opening,
            opened: now,
            opening_time: config.connect_timeout,
            peer_timeout: config.peer_timeout,
            most_window: window,
            options: Vec::new(),
            may_have_64_bits: false,
            peer_port: None,
            idle: None,
            finished: false,
            heard: now,
        }
    }

    fn read_options(&mut self) -> Result<(), SabulError> {
        let Ok(block) = <&[u8; OPTIONS_LEN]>::try_from(&self.options[..]) else { return Ok(()) };
        let options = Block::decode(block).map_err(|error| match error {
            OptionsError::WordsOf64Bits => SabulError::WordsOf64Bits,
            error => SabulError::Options(error),
        })?;
        self.may_have_64_bits = Block::may_have_64_bits(block);
        self.engine.set_window(options.window.min(self.most_window));
        self.peer_port = Some(options.udp_port);
        self.phase = Phase::Echo;
        Ok(())
    }

    // ---- the application's side ----

    /// Bytes that [`write`](Self::write) takes now.
    pub fn room(&self) -> usize {
        if self.takes_data() { self.engine.room() } else { 0 }
    }

    fn takes_data(&self) -> bool {
        !self.finished && !self.is_over()
    }

    /// Takes bytes of the stream, and returns their number.
    pub fn write(&mut self, now: Instant, data: &[u8]) -> usize {
        if !self.takes_data() {
            return 0;
        }
        if !data.is_empty() {
            self.idle = None;
        }
        self.engine.write(now, data)
    }

    /// Nothing follows for now. If that lasts for 100 ms, a packet that is not full leaves as it is, and nothing after it
    /// before it is acknowledged.
    pub fn flush(&mut self, now: Instant) {
        self.idle.get_or_insert(now);
    }

    fn flush_if_idle(&mut self, now: Instant) {
        if self.idle.is_some_and(|since| now >= since + IDLE) {
            self.engine.flush(now);
        }
    }

    /// Nothing follows. Once everything is acknowledged, [`ends_sending`](Self::ends_sending) holds.
    pub fn finish(&mut self, now: Instant) {
        self.finished = true;
        self.engine.finish();
        self.check_end(now);
    }

    fn check_end(&mut self, now: Instant) {
        if self.phase == Phase::Data && self.finished && self.engine.is_delivered() {
            self.phase = Phase::Draining;
            self.heard = now;
        }
    }

    // ---- facts ----

    /// Whether the host should end its direction of the channel, and go on to receive: everything is acknowledged.
    pub fn ends_sending(&self) -> bool {
        self.phase == Phase::Draining
    }

    /// Whether the receiver has everything and has ended the channel, or it failed.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
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

impl OriginalSession for Sender {
    type Fault = SabulError;

    fn handle_channel(&mut self, now: Instant, bytes: &[u8]) -> Result<(), SabulError> {
        self.heard = now;
        let mut rest = bytes;
        if self.phase == Phase::Opening {
            let (head, more) = bytes.split_at(bytes.len().min(OPTIONS_LEN - self.options.len()));
            self.options.extend_from_slice(head);
            rest = more;
            self.read_options().or_else(|error| self.fail(error))?;
        }
        match self.phase {
            // A receiver waits for the echo. One with words of 64 bits has sent twice as much.
            Phase::Echo if !rest.is_empty() => self.fail(SabulError::WordsOf64Bits),
            Phase::Data => {
                if let Err(fault) = self.engine.handle_control(now, rest) {
                    let late_half = self.may_have_64_bits && self.engine.is_unheard();
                    return self.fail(if late_half {
                        SabulError::WordsOf64Bits
                    } else {
                        SabulError::Misbehaved(fault)
                    });
                }
                self.check_end(now);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn channel_ended(&mut self, _now: Instant, end: ChannelEnd) -> Result<(), SabulError> {
        match self.phase {
            Phase::Over => Ok(()),
            Phase::Opening | Phase::Echo => self.fail(SabulError::Opening(end)),
            Phase::Data => self.fail(SabulError::ReceiverLeft(self.engine.unacknowledged())),
            Phase::Draining if end == ChannelEnd::Finished => {
                self.phase = Phase::Over;
                Ok(())
            }
            Phase::Draining => self.fail(SabulError::ReceiverBroke),
        }
    }

    fn poll_channel(&mut self, now: Instant, out: &mut Vec<u8>) {
        if self.phase == Phase::Echo {
            out.append(&mut self.options);
            self.phase = Phase::Data;
            self.flush_if_idle(now);
            self.check_end(now);
        }
    }

    fn peer_port(&self) -> Option<u16> {
        self.peer_port
    }

    fn poll_datagrams<'a, E>(
        &'a mut self,
        now: Instant,
        _content: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<Option<(usize, &'a [u8])>, E> {
        if self.phase != Phase::Data {
            return Ok(None);
        }
        let Some(plan) = self.engine.plan(now) else { return Ok(None) };
        Ok(self.engine.emit(now, plan, scratch))
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), SabulError> {
        match self.phase {
            Phase::Opening if now >= self.opened + self.opening_time => {
                self.fail(SabulError::NoOptions { bytes: self.options.len(), time: self.opening_time })
            }
            Phase::Data => {
                self.engine.handle_timeout(now);
                self.flush_if_idle(now);
                if self.engine.in_flight() == 0 {
                    self.heard = now;
                } else if self.engine.never_reached(now) {
                    return self.fail(SabulError::DatagramsBlocked);
                } else if now - self.heard >= self.peer_timeout {
                    return self.fail(SabulError::PeerSilent(self.peer_timeout));
                }
                Ok(())
            }
            Phase::Draining if now >= self.heard + self.peer_timeout => {
                self.fail(SabulError::ReceiverStays(self.peer_timeout))
            }
            _ => Ok(()),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Opening => Some(self.opened + self.opening_time),
            Phase::Data => {
                let silence = (self.engine.in_flight() > 0).then(|| self.heard + self.peer_timeout);
                let idle = self.idle.filter(|_| self.engine.awaits_flush()).map(|since| since + IDLE);
                [self.engine.deadline(), silence, idle].into_iter().flatten().min()
            }
            Phase::Draining => Some(self.heard + self.peer_timeout),
            Phase::Echo | Phase::Over => None,
        }
    }
}
