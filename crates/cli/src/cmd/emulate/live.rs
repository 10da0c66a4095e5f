//! A line per second about the path while a command runs. A failed emulation ends the command.

use std::io::{IsTerminal, stdout};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::Scope;
use std::time::Duration;

use farhaul_emu::{Emulation, Snapshot};
use farhaul_netem::{Counters, PathSpec};
use farhaul_units::Rate;

use super::Hosts;
use super::near::Target;
use crate::output::human::{count, is_terminal, time};
use crate::output::{Output, progress};

const INTERVAL: Duration = Duration::from_secs(1);

/// Stops when it is dropped.
pub(super) struct Live {
    _stop: SyncSender<()>,
}

impl Live {
    /// Starts. It prints lines if `shown` is set and stderr is a terminal. If stdout is no terminal, the line is redrawn in
    /// place. Ends `command` if the emulation fails.
    pub(super) fn begin<'scope>(
        scope: &'scope Scope<'scope, '_>,
        hosts: &'scope Hosts<'_>,
        (up, down): &(PathSpec, PathSpec),
        output: &Output,
        shown: bool,
        command: Target,
    ) -> Self {
        let shown = shown && is_terminal();
        let (stop, stopped) = sync_channel(0);
        let rates = [up.nominal_rate(), down.nominal_rate()];
        let (emulation, output): (&Emulation, Output) = (hosts.emulation, output.clone());
        scope.spawn(move || {
            let bar = (shown && !stdout().is_terminal()).then(progress::line);
            bar.iter().for_each(|bar| output.attach(bar.clone()));
            let mut before = emulation.look();
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if emulation.has_failed() {
                    // Stopping the emulation reports the reason.
                    command.end();
                    break;
                }
                if !shown {
                    continue;
                }
                let now = emulation.look();
                let line = line(&before, &now, rates);
                match &bar {
                    Some(bar) => bar.set_message(line),
                    None => output.print_line(&output.style().dim(&line)),
                }
                before = now;
            }
            if bar.is_some() {
                output.detach();
            }
        });
        Self { _stop: stop }
    }
}

fn line(before: &Snapshot, now: &Snapshot, rates: [Option<Rate>; 2]) -> String {
    let passed = now.at.saturating_sub(before.at);
    let link = |snapshot: &Snapshot, index: usize| snapshot.links.get(index).copied().unwrap_or_default();
    let of = |name: &str, index: usize| direction(name, &link(before, index), &link(now, index), passed, rates[index]);
    format!("{} · {} · late {}", of("up", 0), of("down", 1), time(now.lateness.p99))
}

/// One direction during the last interval, without parts that are zero.
fn direction(name: &str, before: &Counters, now: &Counters, passed: Duration, rate: Option<Rate>) -> String {
    let carried = now.delivered.bytes.saturating_sub(before.delivered.bytes);
    let carried = Rate::from_bytes_in(carried, passed).unwrap_or(Rate::ZERO);
    let packets = now.queue.mean_packets_since(&before.queue, passed).round() as u64;
    let bytes = now.queue.mean_bytes_since(&before.queue, passed) as u64;
    let wait = match rate {
        Some(rate) if packets > 0 => format!(" ({})", time(rate.time_for(bytes))),
        _ => String::new(),
    };
    let dropped = match now.dropped().saturating_sub(before.dropped()) {
        0 => String::new(),
        dropped => format!(", {} dropped", count(dropped)),
    };
    format!("{name} {carried}, queue {}{wait}{dropped}", count(packets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_is_what_happened_since_the_last_line() {
        let (mut before, second) = (Counters::default(), Duration::from_secs(1));
        before.delivered.bytes = 1_000;
        before.dropped_loss.packets = 7;
        let mut now = before;
        let rate = Some(Rate::from_megabits_per_second(8));
        assert_eq!(direction("up", &before, &now, second, rate), "up 0 bit/s, queue 0");
        now.delivered.bytes += 125_000;
        now.dropped_queue.packets += 3;
        now.queue.packet_nanos = 2 * second.as_nanos();
        now.queue.byte_nanos = 3_000 * second.as_nanos();
        assert_eq!(direction("up", &before, &now, second, rate), "up 1.00 Mbit/s, queue 2 (3.00 ms), 3 dropped");
        assert_eq!(direction("up", &before, &now, second, None), "up 1.00 Mbit/s, queue 2, 3 dropped");
    }
}
