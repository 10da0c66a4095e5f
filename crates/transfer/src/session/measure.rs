//! Measurements of a session: time, processor, packets, limit.

use std::time::Duration;

use farhaul::Stats;
use farhaul_bond::BondedStream;
use farhaul_session::Figures;
use farhaul_udp::Clock;
use farhaul_units::{ByteSize, Instant, Rate};

use super::Waits;
use crate::limit::{self, Caps, Evidence, Limit, ReceiverLosses, share};
use crate::processor::CpuSeconds;
use crate::report::{Direction, FlowReport, Peer, Report, RttMicros, micros};

/// Shares on the wire are in parts per million.
const MILLION: f64 = 1e6;

/// A running measurement.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    clock: Clock,
    began: Instant,
    cpu: CpuSeconds,
}

impl Meter {
    /// Starts a measurement before connecting, or when a peer is accepted.
    pub fn start(clock: Clock) -> Self {
        Self { clock, began: clock.now(), cpu: CpuSeconds::of_process() }
    }

    /// The same measurement as if it had started `ago` before now, or at its start if that is later.
    pub fn restarted(self, ago: Duration) -> Self {
        let since_start = self.elapsed().saturating_sub(ago);
        Self { began: self.began + since_start, ..self }
    }

    /// The time of its clock.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Its clock.
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.now() - self.began
    }

    /// Time from the start to `instant`.
    pub fn until(&self, instant: Instant) -> Duration {
        instant - self.began
    }

    /// Processor time of the process since the start.
    pub fn cpu(&self) -> CpuSeconds {
        CpuSeconds::of_process() - self.cpu
    }

    /// This side's figures for the peer.
    pub fn figures(&self, stats: &Stats, rtt: RttMicros) -> Figures {
        let cpu = self.cpu();
        let known = |micros| (micros > 0).then(|| Duration::from_micros(micros));
        Figures {
            cpu_user: Some(cpu.user_time()),
            cpu_system: Some(cpu.system_time()),
            packets_sent: Some(stats.totals.packets_sent),
            packets_retransmitted: Some(stats.totals.packets_retransmitted),
            packets_received: Some(stats.totals.packets_received),
            packets_lost: Some(stats.totals.packets_lost_receiving),
            packets_dropped: Some(stats.totals.packets_dropped).filter(|packets| *packets > 0),
            rtt_min: known(rtt.min),
            rtt_mean: known(rtt.mean),
            rtt_p99: known(rtt.p99),
            ..Figures::default()
        }
    }
}

/// Fills in the transport's counters.
pub fn fill(end: &mut Report, stats: &Stats, rtt: RttMicros) {
    let totals = &stats.totals;
    end.packets_sent = totals.packets_sent;
    end.packets_retransmitted = totals.packets_retransmitted;
    end.packets_received = totals.packets_received;
    end.packets_dropped = Some(totals.packets_dropped).filter(|packets| *packets > 0);
    end.loss_ratio = match end.direction {
        Some(Direction::Received) => {
            let arrived = totals.packets_received.saturating_sub(totals.packets_duplicate);
            share(totals.packets_lost_receiving as f64, arrived as f64)
        }
        _ => share(totals.packets_lost_sending as f64, totals.packets_sent as f64),
    };
    end.mtu_bytes = Some(stats.packet_size).filter(|bytes| *bytes > 0);
    end.rtt_us = rtt;
    if end.direction == Some(Direction::Sent) {
        end.model_bps = stats.model.map(Rate::bits_per_second);
    }
}

/// Notes the protection of the connection that carries a stream.
pub fn note_protection(end: &mut Report, stream: &BondedStream) {
    let Some(stream) = stream.any_connection() else {
        end.security = Some("ssh");
        return;
    };
    end.security = Some(if stream.is_plain().is_ok_and(|is_plain| is_plain) { "none" } else { "tls1.3" });
    if let Ok(Some(protection)) = stream.protection() {
        end.peer_key = protection.peer_key.map(|key| key.fingerprint());
        end.suite = Some(protection.suite);
    }
}

/// Notes the flows that carried the data of a stream, where they were several.
pub fn note_flows(end: &mut Report, stream: &BondedStream) {
    let each = stream.each_stats();
    if each.len() > 1 {
        // The first connection has what it was given before the flows joined.
        end.flows = each.iter().map(|stats| flow(stats, end.direction)).collect();
    }
}

fn flow(stats: &Stats, direction: Option<Direction>) -> FlowReport {
    let mut report = Report { direction, ..Report::default() };
    let rtt = micros(stats.rtt);
    let rtt = RttMicros { min: micros(stats.min_rtt).min(rtt), mean: rtt, p99: rtt };
    fill(&mut report, stats, rtt);
    let totals = &stats.totals;
    FlowReport {
        bytes: match direction {
            Some(Direction::Received) => totals.bytes_read,
            Some(Direction::Sent) => totals.bytes_acked,
            _ => totals.bytes_read + totals.bytes_acked,
        },
        seconds: stats.elapsed.as_secs_f64(),
        packets_sent: report.packets_sent,
        packets_retransmitted: report.packets_retransmitted,
        packets_received: report.packets_received,
        loss_ratio: report.loss_ratio,
        rtt_us: report.rtt_us,
    }
}

impl Caps {
    /// A sender without a disk, under these caps.
    pub fn sender(self, waits: Waits) -> Sender {
        let Self { rate, buffer, fed } = self;
        Sender { waits, rate, buffer, fed, ..Sender::default() }
    }
}

/// Facts about a sender besides the transport's counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sender {
    /// Waiting times of its thread.
    pub waits: Waits,
    /// Seconds in this side's disk.
    pub disk: f64,
    /// Seconds in the peer's disk, as far as it reports them.
    pub peer_disk: f64,
    /// Seconds for which this side held the data back for the cap of a key.
    pub held_back: f64,
    /// Seconds for which the peer did.
    pub peer_held_back: f64,
    /// What the receiver has lost, as far as it reports that.
    pub receiver: ReceiverLosses,
    /// The data comes from another program.
    pub fed: bool,
    /// The user's cap on the sending rate.
    pub rate: Option<Rate>,
    /// The user's cap on each buffer.
    pub buffer: Option<ByteSize>,
}

/// Fills in the limit of a sender. A transfer that moved nothing had none.
pub fn fill_limit(end: &mut Report, stats: &Stats, sender: &Sender) {
    let limit = limit_of(end.seconds, stats, sender).filter(|_| end.bytes > 0);
    (end.limited_by, end.limited_by_share) = limit.map(|limit| sender.receiver.judge(limit)).unzip();
}

/// What the receiver with these figures has lost.
pub fn losses_of(figures: &Figures) -> ReceiverLosses {
    let Figures { packets_received, packets_lost, packets_dropped, .. } = *figures;
    let [received, lost, dropped] = [packets_received, packets_lost, packets_dropped].map(Option::unwrap_or_default);
    ReceiverLosses { received, lost, dropped }
}

/// The limit that the sender has found, in the knowledge of this receiver.
pub fn limit_of_receiver(sender: &Figures, stats: &Stats) -> Option<(Limit, f64)> {
    let totals = &stats.totals;
    let losses = ReceiverLosses {
        received: totals.packets_received,
        lost: totals.packets_lost_receiving,
        dropped: totals.packets_dropped,
    };
    read_limit(sender).map(|limit| losses.judge(limit))
}

/// Adds this sender's limit so far to the figures for the receiver.
pub fn write_limit(figures: &mut Figures, meter: Meter, stats: &Stats, sender: &Sender) {
    if let Some((limit, share)) = limit_of(meter.elapsed().as_secs_f64(), stats, sender) {
        figures.limit = Some(limit.number());
        figures.limit_share = Some((share * MILLION) as u64);
    }
}

/// The sender's limit, from its own report.
fn read_limit(figures: &Figures) -> Option<(Limit, f64)> {
    let limit = figures.limit.and_then(Limit::of_number)?;
    Some((limit, share(figures.limit_share? as f64, MILLION)))
}

fn limit_of(elapsed: f64, stats: &Stats, sender: &Sender) -> Option<(Limit, f64)> {
    if limit::is_too_short(elapsed, stats.min_rtt) {
        return None;
    }
    let (totals, waits) = (&stats.totals, &sender.waits);
    let seconds = totals.send_duration.as_secs_f64().max(f64::MIN_POSITIVE);
    // Time without data to send or in flight counts as the application's.
    let idle = stats.elapsed.saturating_sub(totals.send_duration);
    let wire_bits = totals.packets_sent as f64 * f64::from(stats.payload_size) * 8.0;
    limit::strongest(&Evidence {
        elapsed,
        application: (totals.limited_by_application + idle).as_secs_f64(),
        flow_window: totals.limited_by_flow_window.as_secs_f64(),
        congestion: totals.limited_by_congestion.as_secs_f64(),
        rate_cap: totals.limited_by_rate_cap.as_secs_f64(),
        of_cap: sender.rate.map(|cap| wire_bits / seconds / cap.bits_per_second() as f64),
        reading: sender.disk,
        answering: waits.peer,
        storing: sender.peer_disk,
        held_back: sender.held_back,
        peer_held_back: sender.peer_held_back,
        room: waits.room,
        small_buffer: sender.buffer.is_some(),
        fed: sender.fed,
        busy: waits.busy,
    })
}

/// The other side's figures for the record.
pub fn peer(figures: &Figures) -> Peer {
    let rtt = |time: Option<Duration>| time.map(micros);
    Peer {
        bytes: figures.bytes,
        seconds: figures.elapsed.as_secs_f64(),
        packets_sent: figures.packets_sent,
        packets_retransmitted: figures.packets_retransmitted,
        packets_received: figures.packets_received,
        packets_lost: figures.packets_lost,
        packets_dropped: figures.packets_dropped,
        rtt_us: rtt(figures.rtt_mean).map(|mean| RttMicros {
            min: rtt(figures.rtt_min).unwrap_or(mean),
            mean,
            p99: rtt(figures.rtt_p99).unwrap_or(mean),
        }),
        cpu_seconds: figures
            .cpu_user
            .zip(figures.cpu_system)
            .map(|(user, system)| CpuSeconds { user: user.as_secs_f64(), system: system.as_secs_f64() }),
        disk_seconds: figures.disk.map(|time| time.as_secs_f64()),
    }
}
