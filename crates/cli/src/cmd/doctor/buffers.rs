//! Socket buffers of the kernel: the limits, what a port gets, and what overflowed.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use farhaul::UDP_RECV_BUFFER;
use farhaul_udp::{BufferKind, BufferReport, Options, SEND_BUFFER, UdpSocket};
use farhaul_units::{ByteSize, Rate};

use super::finding::Finding;
use crate::cmd::kernel_file::{counter, number_in};
use crate::output::human::{count, percent, time};

/// Fast paths for which a buffer is judged.
const GIGABIT: Rate = Rate::from_megabits_per_second(1_000);
const TEN_GIGABIT: Rate = Rate::from_megabits_per_second(10_000);
/// A receiver that waits this long for a processor must lose nothing at 1 Gbit/s.
const PAUSE: Duration = Duration::from_millis(20);
/// Share of dropped datagrams since the start of the system that is worth a word.
const NOTABLE_DROPS: f64 = 1e-4;

/// A buffer of a port, and the limit of the system.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    pub(super) report: BufferReport,
    /// `net.core.rmem_max` or `wmem_max`, in bytes; `None` if it cannot be read.
    pub(super) limit: Option<u64>,
}

/// The two buffers of a port of this process.
pub(super) fn examine() -> Vec<Finding> {
    let options = Options { recv_buffer: UDP_RECV_BUFFER, send_buffer: SEND_BUFFER, ..Options::default() };
    let socket = match UdpSocket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options) {
        Ok(socket) => socket,
        Err(error) => return vec![Finding::problem("sockets", format!("no UDP port can be opened: {error}"))],
    };
    let [recv, send] = *socket.buffers();
    let buffer =
        |report: BufferReport, name| Buffer { report, limit: number_in(&format!("/proc/sys/net/core/{name}")) };
    let recv = buffer(recv, "rmem_max");
    let mut found = vec![judge_receive_buffer(&recv), judge_send_buffer(&buffer(send, "wmem_max"))];
    found.extend(std::fs::read_to_string("/proc/net/snmp").ok().and_then(|snmp| judge_drops(&snmp, &recv)));
    found
}

/// Too small a receive buffer loses packets that have crossed the whole path.
pub(super) fn judge_receive_buffer(buffer: &Buffer) -> Finding {
    let BufferReport { asked, got, .. } = buffer.report;
    let holds = time_at(got, GIGABIT);
    let message = format!(
        "{}: lasts {} at 1 Gbit/s, {} at 10 Gbit/s",
        granted(buffer),
        time(holds),
        time(time_at(got, TEN_GIGABIT)),
    );
    let finding = match got < asked {
        false => Finding::ok("receive_buffer", message + &beyond(buffer)),
        true if holds >= PAUSE => Finding::advice("receive_buffer", message),
        true => Finding::problem("receive_buffer", message + ", so short pauses of this program lose packets"),
    };
    figures(finding, buffer)
}

/// A sender controls its own timing, so a small buffer costs it speed and no packets.
pub(super) fn judge_send_buffer(buffer: &Buffer) -> Finding {
    let BufferReport { asked, got, .. } = buffer.report;
    let message = format!("{}: lasts {} at 10 Gbit/s", granted(buffer), time(time_at(got, TEN_GIGABIT)));
    let finding = match got < asked {
        false => Finding::ok("send_buffer", message + &beyond(buffer)),
        true => Finding::advice("send_buffer", message + ", so fast senders wait more often"),
    };
    figures(finding, buffer)
}

/// The size of a buffer in words.
fn granted(buffer: &Buffer) -> String {
    let BufferReport { asked, got, .. } = buffer.report;
    match got < asked {
        true => format!("{} instead of {}", ByteSize(got as u64), ByteSize(asked as u64)),
        false => format!("{}, as requested", ByteSize(got as u64)),
    }
}

/// The words for a buffer that another user would not get.
fn beyond(buffer: &Buffer) -> String {
    match buffer.limit {
        Some(limit) if buffer.report.forced && limit < buffer.report.asked as u64 => {
            format!(" (as an administrator; other users get {})", ByteSize(limit))
        }
        _ => String::new(),
    }
}

fn figures(finding: Finding, buffer: &Buffer) -> Finding {
    let BufferReport { kind, asked, got, .. } = buffer.report;
    let key = match kind {
        BufferKind::Recv => "net.core.rmem_max",
        BufferKind::Send => "net.core.wmem_max",
    };
    let finding = finding.with("asked_bytes", asked).with("granted_bytes", got).with("limit_bytes", buffer.limit);
    if got < asked { finding.fix(format!("sudo sysctl -w {key}={asked}")) } else { finding }
}

/// The time in which data at this rate fills a buffer.
fn time_at(bytes: usize, rate: Rate) -> Duration {
    rate.time_for(bytes as u64)
}

/// Datagrams of all programs that found their buffer full, by `/proc/net/snmp`. `None` if the table has no such counters.
pub(super) fn judge_drops(snmp: &str, buffer: &Buffer) -> Option<Finding> {
    let (received, dropped) = (counter(snmp, "Udp", "InDatagrams")?, counter(snmp, "Udp", "RcvbufErrors")?);
    let share = dropped as f64 / (received + dropped).max(1) as f64;
    let message = format!(
        "{} of {} datagrams to this machine, {}, were dropped at full receive buffers since it started",
        count(dropped),
        count(received + dropped),
        percent(share)
    );
    let asked = buffer.report.asked;
    let is_small = buffer.limit.is_some_and(|limit| limit < asked as u64);
    let finding = match share > NOTABLE_DROPS && is_small {
        true => Finding::advice("receive_drops", message).fix(format!("sudo sysctl -w net.core.rmem_max={asked}")),
        false => Finding::ok("receive_drops", message),
    };
    Some(finding.with("received_datagrams", received).with("dropped_datagrams", dropped))
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingState;
    use super::*;

    fn buffer(kind: BufferKind, got: usize) -> Buffer {
        let report = BufferReport { kind, asked: 32 << 20, got, forced: false };
        Buffer { report, limit: Some(got as u64) }
    }

    #[test]
    fn the_default_of_linux_is_a_problem_and_its_fix_asks_for_what_the_library_wants() {
        let finding = judge_receive_buffer(&buffer(BufferKind::Recv, 212_992));
        assert_eq!(finding.state, FindingState::Problem);
        assert_eq!(finding.fix.as_deref(), Some("sudo sysctl -w net.core.rmem_max=33554432"));
        assert!(finding.message.contains("1.70 ms at 1 Gbit/s"), "{}", finding.message);
    }

    #[test]
    fn a_buffer_for_a_pause_at_a_gigabit_is_no_problem_and_a_full_one_needs_nothing() {
        assert_eq!(judge_receive_buffer(&buffer(BufferKind::Recv, 2_600_000)).state, FindingState::Advice);
        let full = judge_receive_buffer(&buffer(BufferKind::Recv, 32 << 20));
        assert_eq!((full.state, full.fix), (FindingState::Ok, None));
        let send = judge_send_buffer(&buffer(BufferKind::Send, 212_992));
        assert_eq!(send.state, FindingState::Advice);
        assert!(send.fix.unwrap().contains("net.core.wmem_max=33554432"));
    }

    #[test]
    fn an_administrator_learns_what_others_get() {
        let mut buffer = buffer(BufferKind::Recv, 32 << 20);
        (buffer.report.forced, buffer.limit) = (true, Some(212_992));
        let finding = judge_receive_buffer(&buffer);
        assert!(
            finding.state == FindingState::Ok && finding.message.contains("other users get 213 kB"),
            "{}",
            finding.message
        );
    }

    const SNMP: &str = "Ip: Forwarding\nIp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\n\
        Udp: 999000 5 1000 400 1000\nUdpLite: InDatagrams\nUdpLite: 0\n";

    #[test]
    fn drops_are_advice_only_where_the_limit_is_low() {
        let low = judge_drops(SNMP, &buffer(BufferKind::Recv, 212_992)).unwrap();
        assert!(low.state == FindingState::Advice && low.message.contains("1 000 of 1 000 000"), "{}", low.message);
        assert_eq!(judge_drops(SNMP, &buffer(BufferKind::Recv, 32 << 20)).unwrap().state, FindingState::Ok);
        assert_eq!(judge_drops("Ip: 1\n", &buffer(BufferKind::Recv, 1)), None);
        assert_eq!(judge_drops("Udp: InDatagrams\n", &buffer(BufferKind::Recv, 1)), None);
    }
}
