//! Words and numbers for people: colours, times, counts, names of limits.

use std::io::{IsTerminal, stderr, stdout};
use std::os::fd::AsFd;

use farhaul::UDP_RECV_BUFFER;
use farhaul_transfer::Report;
use farhaul_transfer::internal::Limit;
use farhaul_transfer::internal::limit::share;
pub(crate) use farhaul_transfer::internal::text::{count, digits, percent, plural, reason, time};
use farhaul_units::Rate;

/// One in so many packets that came is the least that died in a socket's buffer for a warning.
const NOTEWORTHY_DROPS: u64 = 1_000;

/// Colours, if wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    coloured: bool,
}

impl Style {
    /// Colours for stderr: on a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`.
    pub(crate) fn of_stderr() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { coloured: is_terminal() && !refused }
    }

    /// Colours for stdout: on a terminal, by the same rules.
    pub(crate) fn of_stdout() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { coloured: stdout().is_terminal() && !is_dumb && !refused }
    }

    /// No colours.
    #[cfg(test)]
    pub(crate) const fn plain() -> Self {
        Self { coloured: false }
    }

    pub(crate) const fn is_coloured(self) -> bool {
        self.coloured
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Whether stderr is a terminal that can redraw a line.
pub(crate) fn is_terminal() -> bool {
    stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// The width of the terminal on stdout in columns; `None` if stdout is none.
pub(crate) fn columns_of_stdout() -> Option<usize> {
    columns_of(stdout())
}

/// The same of stderr.
pub(crate) fn columns_of_stderr() -> Option<usize> {
    columns_of(stderr())
}

fn columns_of(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// A goodput, or the remark that the transfer was too short for one.
pub(crate) fn rate(bits_per_second: Option<u64>) -> String {
    bits_per_second
        .map_or_else(|| "too short for a rate".to_owned(), |bits| Rate::from_bits_per_second(bits).to_string())
}

/// A limit in words, after "limited by".
pub(crate) const fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::Application => "a program at either end, or the small amount of data",
        Limit::DiskRead => "the sender's disk",
        Limit::Cpu => "the sender's processor",
        Limit::SendBuffer => "the send buffer (--buffer)",
        Limit::Congestion => "congestion control",
        Limit::RateCap => "the rate cap (--rate)",
        Limit::ReceiveBuffer => "the receiver's buffer",
        Limit::DiskWrite => "the receiver's disk",
        Limit::KeyRateCap => "the rate cap of your key there (rate= in authorized_keys, or of [plain])",
        Limit::ReceiverCpu => "the receiver's processor, which left packets to die in its socket's buffer",
    }
}

/// What helps against a limit, if something does. The path itself is nothing that a user changes. `packet` is the size of packets in bytes, if
/// probes have found the largest one that the path carries.
pub(crate) fn remedy(limit: Limit, packet: Option<u32>) -> Option<String> {
    Some(match limit {
        Limit::Congestion => return None,
        Limit::Application => {
            "if no program feeds or takes the data, copy more at once: a few bytes take a few round trips".to_owned()
        }
        Limit::DiskRead => "see who else uses the disk of the sending host: iostat -x 1".to_owned(),
        Limit::DiskWrite => "see who else uses the disk of the receiving host: iostat -x 1".to_owned(),
        Limit::Cpu if packet.is_none() => {
            "see who else uses it: top. Larger packets cost less, where the path carries them: --mtu 9000".to_owned()
        }
        Limit::Cpu => "see who else uses it: top".to_owned(),
        Limit::SendBuffer => "leave --buffer out, or give more".to_owned(),
        Limit::RateCap => "raise --rate, or `farhaul ctl rate off` while it runs".to_owned(),
        Limit::ReceiveBuffer => format!(
            "on the receiving host, leave --buffer out or give more, and let the system have room: sudo sysctl -w \
             net.core.rmem_max={UDP_RECV_BUFFER}"
        ),
        Limit::KeyRateCap => "the owner of the server can raise the rate of your key".to_owned(),
        Limit::ReceiverCpu => format!("on the receiving host, {}", room_to_receive()),
    })
}

/// What helps a host that takes packets too late.
fn room_to_receive() -> String {
    format!(
        "see who else uses the processor: top. A larger buffer bridges the time: sudo sysctl -w \
         net.core.rmem_max={UDP_RECV_BUFFER}"
    )
}

/// A warning about packets that died in the buffer of a socket, with what helps, if they were many.
pub(crate) fn drops(end: &Report) -> Option<String> {
    let here = end.packets_dropped.map(|dropped| (dropped, end.packets_received));
    let there = end.peer.as_ref().and_then(|peer| peer.packets_dropped.zip(peer.packets_received));
    let hosts = [("this host", "", here), ("the receiving host", "on that host, ", there)];
    let many = |(dropped, received): &(u64, u64)| {
        dropped.saturating_mul(NOTEWORTHY_DROPS) >= dropped.saturating_add(*received)
    };
    let (host, on_it, (dropped, received)) =
        hosts.into_iter().find_map(|(host, on_it, packets)| Some((host, on_it, packets.filter(many)?)))?;
    Some(format!(
        "{} ({} of those that came) died in the buffer of the socket of {host} (recv_drops), and not on the network: the program took them \
         too late; {on_it}{}",
        plural(dropped, "packet"),
        percent(share(dropped as f64, dropped.saturating_add(received) as f64)),
        room_to_receive(),
    ))
}

#[cfg(test)]
mod tests {
    use farhaul_transfer::internal::report::Peer;

    use super::*;

    #[test]
    fn packets_that_die_in_a_socket_are_a_warning_with_their_number_and_what_helps() {
        let here = |packets_dropped| Report { packets_received: 9_000, packets_dropped, ..Report::default() };
        let [none, few, many] = [None, Some(8), Some(1_000)].map(|dropped| drops(&here(dropped)));
        assert_eq!((none, few), (None, None));
        let many = many.unwrap();
        let parts = ["1 000 packets (10.0 % of those", "this host (recv_drops)", "top", "sysctl -w net.core.rmem_max="];
        assert!(parts.iter().all(|part| many.contains(part)), "{many}");
        let peer = Peer { packets_received: Some(9_000), packets_dropped: Some(90), ..Peer::default() };
        let there = drops(&Report { peer: Some(peer), ..here(Some(1)) }).unwrap();
        assert!(there.contains("90 packets") && there.contains("the receiving host (recv_drops)"), "{there}");
        assert!(there.contains("on that host, see"), "{there}");
    }
}
