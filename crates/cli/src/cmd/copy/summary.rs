//! The last lines of a copy: amounts, times, rates.

use std::time::Duration;

use farhaul_transfer::Report;
use farhaul_transfer::internal::limit::share;
use farhaul_transfer::internal::report::{Direction, goodput};
use farhaul_units::ByteSize;

use crate::cmd::{control_line, limited_by};
use crate::exit::{Code, Fault};
use crate::output::Output;
use crate::output::human::{percent, plural, rate, remedy, time};

/// Seconds from which a copy is slow enough for a word about what helps.
const SLOW: f64 = 5.0;
/// Factor from which the rate of the data alone is worth a word beside that of the whole time.
const NOTEWORTHY: f64 = 1.05;
/// Least bytes whose rate from the first to the last one means something: those of less are in flight together.
const LEAST_FOR_RATE: u64 = 64 << 10;

/// The result in two lines, and a third one about what helps if the copy took long. The rate is that of the whole time. That of the data alone follows where it differs.
pub(super) fn summary(output: &Output, end: &Report) -> String {
    let (whole, moving) = rates(end);
    let (what, besides) = amounts(end);
    let sent_again = match end.direction {
        // Packets of TCP are nobody's business here.
        Some(Direction::Sent) if end.packets_sent > 0 => {
            format!(
                ", {} of the packets retransmitted",
                percent(share(end.packets_retransmitted as f64, end.packets_sent as f64))
            )
        }
        _ => String::new(),
    };
    let limit = end.limited_by.map(|limit| format!("{}; ", limited_by(limit, end.limited_by_share.unwrap_or(0.0))));
    let limit = limit.unwrap_or_default();
    let path = match end.rtt_us.mean {
        // One flight through ssh has none.
        0 => String::new(),
        mean => format!("RTT {}{sent_again}; ", time(Duration::from_micros(mean))),
    };
    let remedy = end.limited_by.filter(|_| end.seconds >= SLOW).and_then(|limit| remedy(limit, end.mtu_bytes));
    let remedy = remedy.map_or(String::new(), |remedy| format!("\nto go faster: {remedy}"));
    let control = end.control_stream.as_ref().map_or(String::new(), |control| format!("\n{}", control_line(control)));
    let style = output.style();
    format!(
        "{} {what}, {}{besides} in {}: {}\n{}{remedy}{control}",
        style.green("copied and verified:"),
        ByteSize(end.bytes),
        time(Duration::from_secs_f64(end.seconds)),
        style.bold(&whole),
        style.dim(&format!("{moving}{path}{limit}{}", end.protection())),
    )
}

/// The files and directories, and what came or stayed besides.
fn amounts(end: &Report) -> (String, String) {
    let mut what = plural(end.files.unwrap_or(0), "file");
    if let Some(directories) = end.directories.filter(|count| *count > 0) {
        what.push_str(&format!(" in {}", plural(directories, "directory")));
    }
    let and = |count: Option<u64>, what: &str| match count.filter(|count| *count > 0) {
        Some(count) => format!(", {}", what.replace('#', &count.to_string())),
        None => String::new(),
    };
    let links =
        end.links.filter(|count| *count > 0).map_or(String::new(), |links| format!(", {}", plural(links, "link")));
    (what, [links, and(end.kept, "# already there"), and(end.deleted, "# removed")].concat())
}

/// The result of a copy between two other hosts, `from` one to another one.
pub(super) fn summary_between(output: &Output, report: &Report, (from, to): (&str, &str), is_carried: bool) -> String {
    let style = output.style();
    let route = if is_carried { "through ssh and this machine" } else { "directly" };
    let (what, besides) = amounts(report);
    format!(
        "{} {what}, {}{besides} in {}: {}\n{}",
        style.green("copied and verified:"),
        ByteSize(report.bytes),
        time(Duration::try_from_secs_f64(report.seconds).unwrap_or_default()),
        style.bold(&rate(report.goodput_bps)),
        style.dim(&format!("from {from} to {to} {route}; {}", report.protection())),
    )
}

/// The rate of the whole time, and the words about that of the data alone, which may be none.
pub(in crate::cmd) fn rates(end: &Report) -> (String, String) {
    let whole = goodput(end.bytes, Duration::from_secs_f64(end.seconds));
    let differs = |moving: u64| whole.is_none_or(|whole| moving as f64 > whole as f64 * NOTEWORTHY);
    let moving = end.goodput_bps.filter(|moving| end.bytes >= LEAST_FOR_RATE && differs(*moving));
    let moving = moving.map(|moving| format!("{} from the first to the last byte; ", rate(Some(moving))));
    (rate(whole), moving.unwrap_or_default())
}

/// The fault of an incomplete copy, with what was copied all the same. Of a copy between two hosts, that is known if both programs
/// tell the same, and files failed alone.
pub(super) fn with_copied(fault: Fault, end: &Report, is_between: bool) -> Fault {
    match end.files.filter(|_| !is_between || fault.code == Code::FilesFailed) {
        Some(files) if files > 0 => {
            let were = if files == 1 { "was" } else { "were" };
            fault.and(&format!("{} of {} {were} copied and verified", plural(files, "file"), ByteSize(end.bytes)))
        }
        _ => fault,
    }
}

#[cfg(test)]
mod tests {
    use farhaul_transfer::internal::Limit;

    use super::*;

    fn of(bytes: u64, seconds: f64, goodput_bps: u64) -> (String, String) {
        rates(&Report { bytes, seconds, goodput_bps: Some(goodput_bps), ..Report::default() })
    }

    #[test]
    fn bytes_time_and_rate_agree_and_the_rate_of_the_data_alone_has_its_name() {
        let (whole, moving) = of(52_400_000, 1.31, 4_730_000_000);
        assert_eq!((whole.as_str(), moving.as_str()), ("320 Mbit/s", "4.73 Gbit/s from the first to the last byte; "));
        assert_eq!(of(100_000_000, 1.0, 810_000_000), ("800 Mbit/s".into(), String::new()));
    }

    #[test]
    fn a_slow_copy_says_what_held_it_back_with_the_number_and_what_helps() {
        let output = Output::from_flag(false);
        let lines = |limit, seconds| {
            let end = Report { limited_by: Some(limit), limited_by_share: Some(0.72), seconds, ..Report::default() };
            summary(&output, &end)
        };
        for (limit, held_back, helps) in [
            (Limit::Application, "a program at either end", "copy more at once"),
            (Limit::DiskRead, "the sender's disk", "iostat"),
            (Limit::Cpu, "the sender's processor", "--mtu 9000"),
            (Limit::SendBuffer, "the send buffer", "--buffer"),
            (Limit::RateCap, "the rate cap", "ctl rate off"),
            (Limit::ReceiveBuffer, "the receiver's buffer", "sysctl -w net.core.rmem_max=33554432"),
            (Limit::DiskWrite, "the receiver's disk", "iostat"),
            (Limit::KeyRateCap, "the rate cap of your key", "the owner"),
            (Limit::ReceiverCpu, "the receiver's processor", "on the receiving host, see who else uses the processor"),
        ] {
            let slow = lines(limit, 60.0);
            let held_back = format!("limited by {held_back}");
            let parts = [held_back.as_str(), "(72.0 % of the time)", "to go faster: ", helps];
            assert!(parts.iter().all(|part| slow.contains(part)), "{slow}");
            let quick = lines(limit, 2.0);
            assert!(quick.contains(&held_back) && !quick.contains("to go faster"), "{quick}");
        }
        let found = Report { mtu_bytes: Some(1_500), limited_by: Some(Limit::Cpu), seconds: 60.0, ..Report::default() };
        let found = summary(&output, &found);
        assert!(found.contains("top") && !found.contains("--mtu"), "probes have found what the path carries: {found}");
        let by_the_path = lines(Limit::Congestion, 60.0);
        assert!(by_the_path.contains("congestion control (72.0 %") && !by_the_path.contains("faster"), "{by_the_path}");
    }

    #[test]
    fn a_few_bytes_have_no_rate_of_their_own() {
        assert_eq!(of(6, 0.24, 387_000), ("200 bit/s".into(), String::new()));
    }

    #[test]
    fn a_failure_says_what_was_copied_all_the_same() {
        let fault = || Fault::new(Code::FilesFailed, "x was not copied");
        let of = |files, bytes| {
            with_copied(fault(), &Report { files: Some(files), bytes, ..Report::default() }, false).message
        };
        assert_eq!(of(0, 0), "x was not copied");
        assert_eq!(of(1, 5), "x was not copied; 1 file of 5 B was copied and verified");
        assert_eq!(of(3, 4_200_000), "x was not copied; 3 files of 4.20 MB were copied and verified");
        let end = Report { files: Some(1), ..Report::default() };
        let between = |code| with_copied(Fault::new(code, "two hosts differ"), &end, true).message;
        assert_eq!(between(Code::Integrity), "two hosts differ");
        assert_eq!(between(Code::PeerLost), "two hosts differ");
        assert!(between(Code::FilesFailed).ends_with("verified"));
    }
}
