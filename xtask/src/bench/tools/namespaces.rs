//! Hosts in network namespaces of this machine, with a wire of the kernel between them. Both end with their handle.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::super::machine::PACKET_SIZE;

/// The kernel's wire between a near and a far host.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Wire {
    /// Both programs on one host.
    Loopback,
    /// A veth pair, whose ends send at no more than `rate` bits per second, if there is one.
    Veth { rate: Option<u64> },
}

/// Longest time in the queue of a limited wire, as `tc` writes it.
const LATENCY: &str = "1ms";
/// Least bucket of a limited wire in bytes: two of the largest packets that segmentation offload hands over, which are
/// 64 KiB and their headers.
const LEAST_BURST: u64 = 2 * 66_000;
/// The bucket of a limited wire in parts of a second of its rate: 100 µs, which bridges late timers of the kernel.
const BURSTS_PER_SECOND: u64 = 10_000;
/// Addresses of the near and the far host, of the block for benchmarks (RFC 2544), which no network uses.
const ADDRESSES: [&str; 2] = ["198.18.0.1", "198.18.0.2"];

/// A network namespace. It exists until its last process has ended: a small shell that waits for the end of a pipe, so it
/// ends with this program, whatever happens.
#[derive(Debug)]
struct Namespace {
    holder: Child,
}

impl Namespace {
    fn new() -> Result<Self> {
        let mut unshare = Command::new("unshare");
        // A separate process group, so that an interrupt from the terminal does not reach it.
        unshare.args(["--net", "sh", "-c", "echo inside; read _"]).process_group(0);
        let holder = unshare.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut namespace = Self { holder: holder.context("unshare (of util-linux)")? };
        let mut line = String::new();
        let stdout = namespace.holder.stdout.take().context("stdout is a pipe")?;
        BufReader::new(stdout).read_line(&mut line)?;
        ensure!(line.starts_with("inside"), "no right to make network namespaces");
        Ok(namespace)
    }

    /// A line for a shell in the namespace. The process is killed if this program ends.
    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &self.holder.id().to_string()]);
        command.args(["setpriv", "--pdeathsig", "KILL", "sh", "-c", line]);
        command
    }

    /// Datagrams that sockets in it have dropped because their receive buffers were full.
    fn receive_losses(&self) -> Result<f64> {
        let path = format!("/proc/{}/net/snmp", self.holder.id());
        let table = fs::read_to_string(&path).with_context(|| path.clone())?;
        counter(&table, "Udp:", "RcvbufErrors").with_context(|| format!("{path} has no Udp RcvbufErrors"))
    }

    fn set_up(&self, line: &str) -> Result<()> {
        let output = self.shell(line).output().context("nsenter (of util-linux)")?;
        ensure!(output.status.success(), "'{line}': {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        // An error leaves nothing to do: the shell ends without its input.
        let _ = self.holder.wait();
    }
}

/// Two hosts on a wire. New ones for each transfer, so that no cache of the kernel connects two runs.
#[derive(Debug)]
pub(super) struct Hosts {
    near: Namespace,
    /// `None`: both programs run on the near host.
    far: Option<Namespace>,
}

impl Hosts {
    /// Makes them.
    pub(super) fn new(wire: Wire) -> Result<Self> {
        let near = Namespace::new()?;
        // The same packets for all programs, also over loopback.
        near.set_up(&format!("ip link set lo mtu {PACKET_SIZE} up"))?;
        let Wire::Veth { rate } = wire else { return Ok(Self { near, far: None }) };
        let far = Namespace::new()?;
        near.set_up(&format!("ip link add wire type veth peer name wire netns {}", far.holder.id()))?;
        for (host, address) in [&near, &far].into_iter().zip(ADDRESSES) {
            host.set_up(&format!("ip address add {address}/24 dev wire && ip link set wire mtu {PACKET_SIZE} up"))?;
            if let Some(rate) = rate {
                host.set_up(&format!("tc qdisc add dev wire root {}", bucket(rate)))?;
            }
        }
        Ok(Self { near, far: Some(far) })
    }

    /// The address at which the near host reaches the far one.
    pub(super) fn address(&self) -> &'static str {
        if self.far.is_some() { ADDRESSES[1] } else { "127.0.0.1" }
    }

    /// Datagrams that sockets of both hosts have dropped because their receive buffers were full.
    pub(super) fn receive_losses(&self) -> Result<f64> {
        let far = self.far.as_ref().map_or(Ok(0.0), Namespace::receive_losses)?;
        Ok(self.near.receive_losses()? + far)
    }

    /// A line for a shell on the near host.
    pub(super) fn near(&self, line: &str) -> Command {
        self.near.shell(line)
    }

    /// A line for a shell on the far host.
    pub(super) fn far(&self, line: &str) -> Command {
        self.far.as_ref().unwrap_or(&self.near).shell(line)
    }
}

/// A counter of proc_net(5): a line of names, then a line of values, both with the protocol first.
fn counter(table: &str, protocol: &str, name: &str) -> Option<f64> {
    let mut lines = table.lines().filter(|line| line.starts_with(protocol)).map(str::split_whitespace);
    let (mut names, mut values) = (lines.next()?, lines.next()?);
    values.nth(names.position(|other| other == name)?)?.parse().ok()
}

/// The token bucket (tc-tbf(8)) of a limited wire.
fn bucket(rate: u64) -> String {
    let burst = (rate / 8 / BURSTS_PER_SECOND).max(LEAST_BURST);
    format!("tbf rate {rate}bit burst {burst} latency {LATENCY}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_read_below_its_name() {
        let table = "Tcp: A RcvbufErrors\nTcp: 1 2\nUdp: InDatagrams InErrors RcvbufErrors\nUdp: 7 8 9\nUdpLite: A\nUdpLite: 1\n";
        assert_eq!(counter(table, "Udp:", "RcvbufErrors"), Some(9.0));
        assert_eq!(counter(table, "Udp:", "Other"), None);
    }

    #[test]
    fn the_bucket_holds_two_large_packets_or_100_microseconds() {
        assert_eq!(bucket(2_500_000_000), "tbf rate 2500000000bit burst 132000 latency 1ms");
        assert_eq!(bucket(40_000_000_000), "tbf rate 40000000000bit burst 500000 latency 1ms");
    }
}
