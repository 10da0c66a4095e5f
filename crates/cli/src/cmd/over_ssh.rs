//! The near side of a copy over SSH: starts the far program, and reaches it over UDP, or through ssh where UDP is blocked.

use std::io::Read;
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use farhaul::Stream;
use farhaul::security::{KeyPair, PublicKey};

use super::Context;
use super::connect::Calling;
use crate::exit::{Code, Fault};
use crate::far::messages::{Call, Failed, FarSays, Hello, Ready, Task, VERSION};
use crate::far::tunnel::{Entrance, Tunnel, WINDOW};
use crate::far::{FarProgram, OnMissing, SshCopyOptions, SshOptions, setting, voice};
use crate::options::Transport;
use crate::output::Output;
use crate::output::human::time;
use crate::output::json::Start;
use crate::trust::{Server, identity};

/// Time without an answer after which UDP counts as blocked, since TCP works (command-line contract, time-outs).
const UDP_DEAD: Duration = Duration::from_secs(3);
/// The setting in records that names what carries the datagrams, if it is not UDP.
pub(super) const CARRIER: &str = "carrier";
/// Most that ssh prints about its settings, bytes.
const MOST_SETTINGS: u64 = 256 << 10;
/// Most addresses to try at once.
const MOST_ADDRESSES: usize = 6;

/// How the near side reaches far programs.
pub(super) struct OverSsh<'a> {
    pub(super) context: &'a Context,
    pub(super) output: &'a Output,
    pub(super) transport: &'a Transport,
    pub(super) options: &'a SshCopyOptions,
}

/// A connection, and the far program behind it, if ssh started one.
#[derive(Debug)]
pub(super) struct Reached {
    pub(super) stream: Stream,
    pub(super) far: Option<FarProgram>,
}

/// Another far program, for a far program that calls it.
#[derive(Clone, Debug)]
pub(super) struct Other {
    /// The key of this side, which the other one admits.
    identity: KeyPair,
    /// Its host, in messages.
    pub(super) name: String,
    /// Whether its target is a directory in any case.
    pub(super) is_directory: bool,
    /// Whether its target takes one entry.
    pub(super) takes_one: bool,
    key: PublicKey,
    addresses: Vec<SocketAddr>,
    /// The ports that the user has chosen.
    ports: Option<(u16, u16)>,
    /// Gives the entrance of a tunnel through the near program, once that is open.
    detour: Arc<Mutex<Receiver<Entrance>>>,
}

impl Other {
    /// The program that the near one names.
    pub(super) fn new(
        call: Call,
        identity: KeyPair,
        ports: Option<(u16, u16)>,
        detour: Receiver<Entrance>,
    ) -> Result<Self, Fault> {
        let Call { key, addresses, is_directory, takes_one, name } = call;
        let key =
            key.parse().map_err(|_| Fault::new(Code::Protocol, "the other far program has no key of a known kind"))?;
        Ok(Self {
            identity,
            name,
            is_directory,
            takes_one,
            key,
            addresses,
            ports,
            detour: Arc::new(Mutex::new(detour)),
        })
    }

    /// Asks the near program for a tunnel, because of `blocked`. `None` if it wants none.
    fn detour(&self, blocked: &Fault) -> Option<Entrance> {
        voice::say(&FarSays::Blocked(Failed::from(blocked))).ok()?;
        self.detour.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
    }
}

impl Reached {
    /// The fault of a copy that failed: what the far program said explains more.
    pub(super) fn explained(&mut self, fault: Fault) -> Fault {
        match self.far.as_mut().map(|far| far.explained(fault.clone())) {
            Some(lost) if lost.code == Code::SshFailed => lost.and("--detach lets a copy go on without ssh"),
            Some(explained) => explained,
            None => fault,
        }
    }
}

impl OverSsh<'_> {
    /// Starts a far program on `host` for this task, and connects to it.
    pub(super) fn connect(&self, host: &str, task: Task, mut start: Start) -> Result<Reached, Fault> {
        let identity = identity::generate()?;
        let hello = self.hello(Some(identity.public()), task);
        let (mut far, ready, addresses) = self.start(host, &hello)?;
        let server = Server::with_key(host.to_owned(), identity, self.transport.security.cipher(), key_of(&ready)?);
        let quick = self.transport.connecting_within(UDP_DEAD);
        let calling = Calling { context: self.context, output: self.output, transport: &quick, server: Some(server) };
        let begun = self.context.clock.now();
        let blocked = match calling.first_of(&addresses, start.clone()) {
            Ok(stream) => {
                far.carries(stream.canceller());
                return Ok(Reached { stream, far: Some(far) });
            }
            Err(fault) if fault.code.exit() != Code::UdpBlocked.exit() => return Err(far.explained(fault)),
            Err(fault) => {
                let waited = self.context.clock.now() - begun;
                let blocked = Blocked { addresses: &addresses, why: &fault, waited, limit: quick.connect_timeout };
                blocked.fault(&format!("SSH reaches {host}, and UDP does not reach "), "", self.options.way.port_range)
            }
        };
        if self.options.detach {
            return Err(blocked.and("--detach leaves no SSH connection to copy through"));
        }
        if self.options.no_fallback {
            return Err(blocked);
        }
        self.output.warn(&format!("{blocked}; the data goes through the SSH connection, which is slower"));
        note_detour(&mut start, self.context.clock.now() - begun);
        let narrow = self.transport.with_most_underway(WINDOW);
        let stream = self.through_ssh(&mut far, Calling { transport: &narrow, ..calling }, start)?;
        Ok(Reached { stream, far: Some(far) })
    }

    /// The first message to a far program that admits `key`.
    pub(super) fn hello(&self, key: Option<PublicKey>, task: Task) -> Hello {
        Hello {
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            key: key.map(|key| key.to_string()),
            task,
            options: self.transport.for_far_program(),
            ports: self.options.way.port_range,
            detach: self.options.detach,
        }
    }

    /// Starts a far program. Returns its addresses, too, which may be none.
    pub(super) fn start(&self, host: &str, hello: &Hello) -> Result<(FarProgram, Ready, Vec<SocketAddr>), Fault> {
        let on_missing = if self.options.install { OnMissing::Install } else { OnMissing::Offer };
        start((self.context, self.output), (&self.options.way, on_missing), host, hello)
    }

    /// Connects through the SSH connection.
    fn through_ssh(&self, far: &mut FarProgram, calling: Calling<'_>, start: Start) -> Result<Stream, Fault> {
        let pipes = far.datagrams()?;
        let at_end = pipes.at_end();
        let (out, into, hear) = pipes.divided();
        let tunnel = Tunnel::open()?;
        let entrance = tunnel.entrance();
        tunnel.run(out, into, hear, at_end)?;
        let stream = calling.through(&entrance, start)?;
        far.carries(stream.canceller());
        Ok(stream)
    }
}

/// Starts a far program on `host`. Returns its addresses, too, which may be none.
pub(super) fn start(
    (context, output): (&Context, &Output),
    (options, on_missing): (&SshOptions, OnMissing),
    host: &str,
    hello: &Hello,
) -> Result<(FarProgram, Ready, Vec<SocketAddr>), Fault> {
    // Ssh needs no network for its settings.
    let settings = settings(options.settings(host)?);
    let options = options.after(&settings);
    let (far, ready) = FarProgram::start((&options, on_missing), host, hello, &context.interrupt, output)?;
    let addresses = addresses(&settings, &ready);
    Ok((far, ready, addresses))
}

/// What this ssh prints about its settings. Nothing if it has none: then its own start says why.
fn settings(mut ssh: Command) -> String {
    let mut text = String::new();
    if let Ok(mut child) = ssh.stdin(Stdio::null()).stderr(Stdio::null()).spawn() {
        let _ = child.stdout.take().map(|stdout| stdout.take(MOST_SETTINGS).read_to_string(&mut text));
        let _ = child.wait();
    }
    text
}

/// Connects to a far program that ssh started elsewhere: over UDP, or through the near program where UDP is blocked.
pub(super) fn call(
    context: &Context,
    output: &Output,
    transport: &Transport,
    other: &Other,
    mut start: Start,
) -> Result<Stream, Fault> {
    let server = Server::with_key(other.name.clone(), other.identity.clone(), transport.security.cipher(), other.key);
    let quick = transport.connecting_within(UDP_DEAD);
    let calling = Calling { context, output, transport: &quick, server: Some(server) };
    let begun = context.clock.now();
    let blocked = match calling.first_of(&other.addresses, start.clone()) {
        Err(fault) if fault.code.exit() == Code::UdpBlocked.exit() => {
            // Ssh reached it from elsewhere.
            let (waited, limit) = (context.clock.now() - begun, quick.connect_timeout);
            let blocked = Blocked { addresses: &other.addresses, why: &fault, waited, limit };
            blocked.fault("UDP does not reach ", &format!(" ({})", other.name), other.ports)
        }
        connected => return connected,
    };
    note_detour(&mut start, context.clock.now() - begun);
    let Some(entrance) = other.detour(&blocked) else { return Err(context.interrupt.fault().unwrap_or(blocked)) };
    Calling { transport: &transport.with_most_underway(WINDOW), ..calling }.through(&entrance, start)
}

/// Notes for the record that datagrams go through ssh, after UDP was tried for this long.
fn note_detour(start: &mut Start, tried: Duration) {
    start.settings.insert(CARRIER.into(), "ssh".into());
    start.settings.insert("udp_tried_seconds".into(), tried.as_secs_f64().into());
}

/// The key of a far program.
pub(super) fn key_of(ready: &Ready) -> Result<PublicKey, Fault> {
    ready.key.parse().map_err(|_| Fault::new(Code::Protocol, "the far program has a key of another kind"))
}

/// A far program that UDP does not reach.
struct Blocked<'a> {
    addresses: &'a [SocketAddr],
    why: &'a Fault,
    waited: Duration,
    limit: Duration,
}

impl Blocked<'_> {
    /// `intro` stands before the addresses and `name` behind them. `range`: the ports that the user has chosen.
    fn fault(&self, intro: &str, name: &str, range: Option<(u16, u16)>) -> Fault {
        let tried = match self.addresses {
            [] => "it".to_owned(),
            all => all.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" and "),
        };
        let why = match self.limit {
            // The network or this machine says why.
            limit if self.waited < limit => format!(" ({})", self.why),
            limit if limit.subsec_nanos() == 0 => format!(" within {} s", limit.as_secs()),
            limit => format!(" within {}", time(limit)),
        };
        let next = match range {
            // Open ports lead nowhere, and the reason has its own next step.
            _ if self.why.code == Code::NoRoute => {
                return Fault::new(Code::UdpBlocked, format!("{intro}{tried}{name}{why}"));
            }
            Some((low, high)) => format!("let firewalls pass UDP ports {low}-{high}, those of --port-range"),
            None => {
                "choose ports with --port-range, for instance 50000-50100, and let firewalls pass them, since the port is new each time"
                    .to_owned()
            }
        };
        Fault::new(Code::UdpBlocked, format!("{intro}{tried}{name}{why}: {next}"))
    }
}

/// Where the far program may be reached: the host of ssh, and the address under which ssh reached it.
fn addresses(settings: &str, ready: &Ready) -> Vec<SocketAddr> {
    let value = |key: &str| setting(settings, key);
    let passes_hosts = value("proxyjump").is_some() || value("proxycommand").is_some();
    let named = value("hostname").and_then(|name| (name, ready.port).to_socket_addrs().ok());
    let mut all: Vec<SocketAddr> = named.into_iter().flatten().collect();
    if let Some(address) = ready.address {
        let at = SocketAddr::from((address.to_canonical(), ready.port));
        // Behind a jump host, the name may mean another host here.
        all.insert(if passes_hosts { 0 } else { all.len() }, at);
    }
    let mut seen = Vec::new();
    for address in all {
        if !seen.contains(&address) && seen.len() < MOST_ADDRESSES {
            seen.push(address);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocked_udp_has_its_true_reason_and_ports_to_open() {
        let addresses = ["192.0.2.7:41000".parse().unwrap()];
        let said = |code, waited, limit, range| {
            let why = Fault::new(code, "no route to 192.0.2.7:41000");
            let blocked = Blocked { addresses: &addresses, why: &why, waited, limit };
            blocked.fault("UDP does not reach ", " (far)", range).message
        };
        let silent = said(Code::ConnectTimeout, UDP_DEAD, UDP_DEAD, None);
        assert!(silent.contains("192.0.2.7:41000 (far) within 3 s: choose ports with --port-range, for"), "{silent}");
        let silent =
            said(Code::ConnectTimeout, Duration::from_secs(1), Duration::from_millis(500), Some((47_000, 47_001)));
        assert!(silent.contains("within 500 ms: let firewalls pass UDP ports 47000-47001"), "{silent}");
        let unrouted = said(Code::NoRoute, Duration::from_millis(400), UDP_DEAD, None);
        assert_eq!(unrouted, "UDP does not reach 192.0.2.7:41000 (far) (no route to 192.0.2.7:41000)");
    }

    #[test]
    fn the_name_of_ssh_comes_first_and_behind_a_jump_host_the_far_end_knows_better() {
        let ready = Ready { key: String::new(), port: 7, address: "10.0.0.9".parse().ok(), takes_one: false };
        let direct = addresses("user me\nhostname 192.0.2.1\nport 22\nproxyjump none\n", &ready);
        assert_eq!(direct, ["192.0.2.1:7".parse().unwrap(), "10.0.0.9:7".parse().unwrap()]);
        let behind = addresses("hostname 192.0.2.1\nproxyjump jump\n", &ready);
        assert_eq!(behind, ["10.0.0.9:7".parse().unwrap(), "192.0.2.1:7".parse().unwrap()]);
        let same = addresses("hostname 10.0.0.9\n", &ready);
        assert_eq!(same.len(), 1);
        assert!(addresses("", &Ready { address: None, ..ready }).is_empty());
    }
}
