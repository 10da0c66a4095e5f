//! Forged packets: attackers in two further networks send with the addresses of the server and of the client.
//!
//! ```text
//! attacker as client ── server ── client ── attacker as server
//! ```
//!
//! Each has a network namespace. An attacker has the address and the port of the side that it imitates, and a link to the other one. No
//! answer comes back to it, and it knows no numbers of the connection.

pub(super) mod attacker;

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Outcome;
use super::bed::Bed;
use super::process::has;
use crate::clock::{Stopwatch, pause};
use crate::packages::is_root;

const SERVER: &str = "10.77.0.1";
const CLIENT: &str = "10.77.0.2";
const PORT: u16 = 9000;
/// Of the copy, so that it is no matter of the processors.
const RATE: &str = "40mbit";
/// The attackers together, per second.
const PACKETS: u64 = 10_000;
/// Least share of the goodput without attackers: encrypted and plain.
const LEAST: [f64; 2] = [0.9, 0.7];

const ATTEMPTS: u32 = 3;

/// A network namespace, which ends with its handle.
struct Network(Child);

impl Network {
    fn new() -> Result<Self> {
        let network = Self(Command::new("unshare").args(["--net", "sleep", "600"]).stdin(Stdio::null()).spawn()?);
        let its = || fs::read_link(format!("/proc/{}/ns/net", network.0.id())).ok();
        let (own, began) = (fs::read_link("/proc/self/ns/net")?, Stopwatch::start());
        while its().is_none_or(|its| its == own) {
            ensure!(began.elapsed() < Duration::from_secs(5), "unshare makes no network");
            pause(Duration::from_millis(2));
        }
        Ok(network)
    }

    /// The words before a command that runs in it.
    fn wrapper(&self) -> Vec<String> {
        ["nsenter", "--target", &self.0.id().to_string(), "--net", "--"].map(str::to_owned).to_vec()
    }

    fn command(&self) -> Command {
        let words = self.wrapper();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        command
    }

    fn runs(&self, line: &str) -> Result<()> {
        let output = self.command().args(["sh", "-c", line]).output()?;
        ensure!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// A link to another network. This end of it has an address, or none.
    fn links(&self, name: &str, other: &Self, addresses: [Option<&str>; 2]) -> Result<()> {
        self.runs(&format!("ip link add {name} type veth peer name {name} netns {}", other.0.id()))?;
        for (network, address) in [self, other].into_iter().zip(addresses) {
            if let Some(address) = address {
                network.runs(&format!("ip address add {address}/24 dev {name}"))?;
            }
            network.runs(&format!("ip link set {name} up && echo 0 > /proc/sys/net/ipv4/conf/{name}/rp_filter"))?;
        }
        Ok(())
    }

    /// Datagrams that came to its sockets.
    fn datagrams(&self) -> Result<u64> {
        let table = self.command().args(["cat", "/proc/net/snmp"]).output()?;
        let table = String::from_utf8_lossy(&table.stdout).into_owned();
        let count = table.lines().filter_map(|line| line.strip_prefix("Udp: ")).nth(1);
        count.and_then(|line| line.split(' ').next()?.parse().ok()).context("the system counts no datagrams")
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An attacker that sends until its handle goes.
struct Attacker(Child);

impl Attacker {
    fn starts(network: &Network, from: (&str, u16), to: (&str, u16)) -> Result<Self> {
        let (from, to) = (format!("{}:{}", from.0, from.1), format!("{}:{}", to.0, to.1));
        let rate = (PACKETS / 2).to_string();
        let mut command = network.command();
        command.arg(std::env::current_exe()?).args(["torture", attacker::OPTION, &from, &to, &rate]);
        Ok(Self(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?))
    }

    /// Ends it. Returns the number of packets.
    fn ends(mut self) -> Result<u64> {
        self.0.stdin.take().context("it is a pipe")?.flush()?;
        let mut count = String::new();
        self.0.stdout.take().context("it is a pipe")?.read_to_string(&mut count)?;
        count.trim().parse().with_context(|| format!("an attacker ends with {count:?}"))
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The four networks.
struct Networks {
    server: Network,
    client: Network,
    as_client: Network,
    as_server: Network,
}

impl Networks {
    fn new() -> Result<Self> {
        let [server, client, as_client, as_server] =
            [Network::new()?, Network::new()?, Network::new()?, Network::new()?];
        server.links("pair", &client, [Some(SERVER), Some(CLIENT)])?;
        as_client.links("forged", &server, [Some(CLIENT), None])?;
        as_server.links("forged", &client, [Some(SERVER), None])?;
        Ok(Self { server, client, as_client, as_server })
    }

    /// Copies, with attackers or without. Returns the seconds and the number of forged packets.
    fn copy(&self, bed: &Bed, [serve, trust]: [&[&str]; 2], is_attacked: bool) -> Result<(f64, u64)> {
        let (in_server, in_client) = (self.server.wrapper(), self.client.wrapper());
        let [in_server, in_client] =
            [&in_server, &in_client].map(|words| words.iter().map(String::as_str).collect::<Vec<_>>());
        let arrived = || Ok::<_, anyhow::Error>([self.server.datagrams()?, self.client.datagrams()?]);
        bed.empty_target()?;
        let before = arrived()?;
        let address = format!("{SERVER}:{PORT}");
        let _server = bed.server_at(&in_server, &address, "root", &[serve, &["--rate", RATE]].concat())?;
        let mut copy = bed.pull(&in_client, &address, &[trust, &["--flows", "1"]].concat())?;
        let mut attackers = Vec::new();
        if is_attacked {
            let port = copy.local()?.port();
            attackers.push(Attacker::starts(&self.as_client, (CLIENT, port), (SERVER, PORT))?);
            attackers.push(Attacker::starts(&self.as_server, (SERVER, PORT), (CLIENT, port))?);
        }
        let run = copy.end()?;
        let (after, mut packets) = (arrived()?, 0);
        for (attacker, (after, before)) in attackers.into_iter().zip(after.into_iter().zip(before)) {
            let forged = attacker.ends()?;
            packets += forged;
            ensure!(after - before > forged * 9 / 10, "of {forged} forged packets, {} arrived", after - before);
        }
        ensure!(run.code == Some(0), "{serve:?}: exit code {:?}: {}", run.code, run.stderr);
        bed.is_whole()?;
        Ok((run.end["seconds"].as_f64().context("the end has its seconds")?, packets))
    }
}

pub(super) fn attackers(bed: &Bed) -> Result<Outcome> {
    if !is_root() || !has("ip") || !has("unshare") || !has("nsenter") {
        return Ok(Outcome::Impossible("it needs root, and the programs ip, unshare and nsenter".into()));
    }
    let networks = match Networks::new() {
        Ok(networks) => networks,
        Err(error) => return Ok(Outcome::Impossible(format!("{error:#}"))),
    };
    let trusts: [[&[&str]; 2]; 2] =
        [[&["--any-client"], &["--host-key-policy", "accept-new"]], [&["--plain"], &["--plain"]]];
    let mut seen = Vec::new();
    for (trust, least) in trusts.into_iter().zip(LEAST) {
        // The machine may be busy with something else for a moment.
        let mut best = (0.0, 0.0);
        for _ in 0..ATTEMPTS {
            let (quiet, _) = networks.copy(bed, trust, false)?;
            let (seconds, packets) = networks.copy(bed, trust, true)?;
            best = if quiet / seconds > best.0 { (quiet / seconds, packets as f64 / seconds) } else { best };
            if best.0 >= least {
                break;
            }
        }
        let (ratio, rate) = best;
        ensure!(rate > PACKETS as f64 / 2.0, "{trust:?}: the attackers sent only {rate:.0} packets per second");
        ensure!(ratio >= least, "{trust:?}: {:.0} % of the goodput, at least {:.0} %", ratio * 100.0, least * 100.0);
        seen.push(format!("{:.0} % beside {rate:.0} forged packets/s", ratio * 100.0));
    }
    Ok(Outcome::Right(format!("goodput: encrypted {}, whole", seen.join("; plain "))))
}
