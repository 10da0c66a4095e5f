//! The local side of a copy over SSH: starts the remote program, and reaches it over UDP, or through ssh where UDP is blocked.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use farhaul::Stream;
use farhaul::security::{KeyPair, PublicKey};
use farhaul_session::Rules;

use super::messages::{Call, Failed, FromRemote, Hello, PathText, Ready, Task, VERSION};
use super::tunnel::{Entrance, Tunnel, WINDOW};
use super::{RemoteProgram, Ssh, setting, voice};
use crate::bond::{BondedStream, Further};
use crate::connect::Calling;
use crate::environment::Environment;
use crate::error::{Code, Error};
use crate::event::{Event, Waiting};
use crate::keys::{Server, identity};
use crate::settings::Settings;
use crate::text::time;

/// Time without an answer after which UDP counts as blocked, since TCP works (command-line contract, time-outs).
const UDP_DEAD: Duration = Duration::from_secs(3);
/// What carries the datagrams where UDP is blocked.
const CARRIER: &str = "ssh";
/// Most that ssh prints about its settings, bytes.
const MOST_SETTINGS: u64 = 256 << 10;
/// Most addresses to try at once.
const MOST_ADDRESSES: usize = 6;

/// How the local side reaches remote programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OverSsh<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) settings: &'a Settings,
    pub(crate) ssh: &'a Ssh,
    /// This side only sends data.
    pub(crate) only_sends: bool,
}

/// A connection, and the remote program behind it, if ssh started one.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) stream: BondedStream,
    pub(crate) far: Option<RemoteProgram>,
    /// What opens further flows. Datagrams through ssh or TCP have one.
    pub(crate) further: Option<Further>,
}

/// Another remote program, for a remote program that calls it.
#[derive(Clone, Debug)]
pub struct Other {
    /// The key of this side, which the other one admits.
    identity: KeyPair,
    /// Its host, in messages.
    pub(crate) name: String,
    /// Whether its target is a directory in any case.
    pub(crate) is_directory: bool,
    /// Whether its target takes one entry.
    pub(crate) takes_one: bool,
    key: PublicKey,
    addresses: Vec<SocketAddr>,
    /// The ports that the user has chosen.
    ports: Option<(u16, u16)>,
    /// Gives the entrance of a tunnel through the local program, once that is open.
    detour: Arc<Mutex<Receiver<Entrance>>>,
}

impl Other {
    /// The program that the near one names.
    pub(crate) fn new(
        call: Call,
        identity: KeyPair,
        ports: Option<(u16, u16)>,
        detour: Receiver<Entrance>,
    ) -> Result<Self, Error> {
        let Call { key, addresses, is_directory, takes_one, name } = call;
        let key = key
            .parse()
            .map_err(|_| Error::new(Code::Protocol, "the other remote program has no key of a known kind"))?;
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

    /// Asks the local program for a tunnel, because of `blocked`. `None` if it wants none.
    fn detour(&self, blocked: &Error) -> Option<Entrance> {
        voice::send(&FromRemote::Blocked(Failed::from(blocked))).ok()?;
        self.detour.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
    }
}

impl Reached {
    /// The error of a copy that failed: what the remote program said explains more.
    pub(crate) fn explained(&mut self, fault: Error) -> Error {
        match self.far.as_mut().map(|far| far.explained(fault.clone())) {
            Some(lost) if lost.code == Code::SshFailed => lost.and("--detach lets a copy go on without ssh"),
            Some(explained) => explained,
            None => fault,
        }
    }
}

impl OverSsh<'_> {
    /// Starts a remote program on `host` for this task, and connects to it.
    pub(crate) fn connect(&self, host: &str, task: Task, rules: Option<&Rules>) -> Result<Reached, Error> {
        let Self { environment, settings, .. } = *self;
        let identity = identity::generate()?;
        let hello = self.hello(Some(identity.public()), task, rules);
        let (mut far, ready, addresses) = self.start(host, &hello)?;
        let server = Server::with_key(host.to_owned(), identity, settings.security.cipher, key_of(&ready)?);
        let quick = settings.connecting_within(UDP_DEAD);
        let calling = Calling { only_sends: self.only_sends, ..Calling::with(environment, &quick, Some(server)) };
        let begun = environment.clock.now();
        let blocked = match calling.first_of(&addresses) {
            Ok(stream) => {
                far.carries(stream.canceller());
                let further = Some(calling.further(&stream));
                return Ok(Reached { stream: stream.into(), far: Some(far), further });
            }
            Err(error) if error.code.exit() != Code::UdpBlocked.exit() => return Err(far.explained(error)),
            Err(error) => {
                let waited = environment.clock.now() - begun;
                let blocked = Blocked { addresses: &addresses, why: &error, waited, limit: quick.connect_timeout };
                blocked.error(&format!("SSH reaches {host}, and UDP does not reach "), "", self.ssh.port_range)
            }
        };
        if self.ssh.detach {
            return Err(blocked.and("--detach leaves no SSH connection to copy through"));
        }
        if self.ssh.no_fallback {
            return Err(blocked);
        }
        environment.events.warn(&format!("{blocked}; the data goes through the SSH connection, which is slower"));
        let carrier = Some((CARRIER, environment.clock.now() - begun));
        let narrow = settings.with_most_underway(WINDOW);
        let stream = through_ssh(&mut far, &Calling { settings: &narrow, carrier, ..calling })?;
        Ok(Reached { stream: stream.into(), far: Some(far), further: None })
    }

    /// The first message to a remote program that admits `key`.
    pub(crate) fn hello(&self, key: Option<PublicKey>, task: Task, rules: Option<&Rules>) -> Hello {
        Hello {
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            key: key.map(|key| key.to_string()),
            options: self.settings.words(matches!(task, Task::Receive { .. })),
            task,
            rules: rules.map(|rules| PathText::new(&rules.to_bytes())),
            ports: self.ssh.port_range,
            detach: self.ssh.detach,
        }
    }

    /// Starts a remote program. Returns its addresses, too, which may be none.
    pub(crate) fn start(&self, host: &str, hello: &Hello) -> Result<(RemoteProgram, Ready, Vec<SocketAddr>), Error> {
        start(self.environment, (self.ssh, true), host, hello)
    }
}

/// Connects through the SSH connection.
fn through_ssh(far: &mut RemoteProgram, calling: &Calling<'_>) -> Result<Stream, Error> {
    let pipes = far.datagrams()?;
    let at_end = pipes.at_end();
    let (out, into, on_message) = pipes.divided();
    let tunnel = Tunnel::open()?;
    let entrance = tunnel.entrance();
    tunnel.run(out, into, on_message, at_end)?;
    let stream = calling.through(&entrance)?;
    far.carries(stream.canceller());
    Ok(stream)
}

/// Starts a remote program on `host`. Returns its addresses, too, which may be none. If the program is missing there and `ssh` has
/// none to install, `offers_install` decides whether the error says how.
pub(crate) fn start(
    environment: &Environment,
    (ssh, offers_install): (&Ssh, bool),
    host: &str,
    hello: &Hello,
) -> Result<(RemoteProgram, Ready, Vec<SocketAddr>), Error> {
    // Ssh needs no network for its settings.
    let settings = settings(ssh.settings(host)?);
    let ssh = ssh.after(&settings);
    environment.events.send(&Event::Waiting(Waiting::Login(host)));
    let (far, ready) = RemoteProgram::start((&ssh, offers_install), host, hello, environment)?;
    let addresses = addresses(&settings, &ready);
    Ok((far, ready, addresses))
}

/// A remote program that answers questions about the path to it, and copies nothing. Its drop ends it.
#[derive(Debug)]
pub struct Answering {
    /// Its key.
    pub key: PublicKey,
    /// Its UDP port.
    pub port: u16,
    /// Where it may be reached.
    pub addresses: Vec<SocketAddr>,
    _far: RemoteProgram,
}

impl Answering {
    /// Starts one on `host`, which admits this key alone.
    ///
    /// # Errors
    /// Ssh does not reach the host, or the program is missing there.
    pub fn start(environment: &Environment, ssh: &Ssh, host: &str, admitted: PublicKey) -> Result<Self, Error> {
        let hello = Hello {
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            key: Some(admitted.to_string()),
            task: Task::Answer,
            rules: None,
            options: Vec::new(),
            ports: ssh.port_range,
            detach: false,
        };
        let (far, ready, addresses) = start(environment, (ssh, false), host, &hello)?;
        Ok(Self { key: key_of(&ready)?, port: ready.port, addresses, _far: far })
    }
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

/// Connects to a remote program that ssh started elsewhere: over UDP, or through the local program where UDP is blocked.
pub(crate) fn call(environment: &Environment, settings: &Settings, other: &Other) -> Result<Stream, Error> {
    let server = Server::with_key(other.name.clone(), other.identity.clone(), settings.security.cipher, other.key);
    let quick = settings.connecting_within(UDP_DEAD);
    let calling = Calling { only_sends: true, ..Calling::with(environment, &quick, Some(server)) };
    let begun = environment.clock.now();
    let blocked = match calling.first_of(&other.addresses) {
        Err(error) if error.code.exit() == Code::UdpBlocked.exit() => {
            // Ssh reached it from elsewhere.
            let (waited, limit) = (environment.clock.now() - begun, quick.connect_timeout);
            let blocked = Blocked { addresses: &other.addresses, why: &error, waited, limit };
            blocked.error("UDP does not reach ", &format!(" ({})", other.name), other.ports)
        }
        connected => return connected,
    };
    let carrier = Some((CARRIER, environment.clock.now() - begun));
    let Some(entrance) = other.detour(&blocked) else {
        return Err(environment.cancellation.reason().unwrap_or(blocked));
    };
    Calling { settings: &settings.with_most_underway(WINDOW), carrier, ..calling }.through(&entrance)
}

/// The key of a remote program.
pub(crate) fn key_of(ready: &Ready) -> Result<PublicKey, Error> {
    ready.key.parse().map_err(|_| Error::new(Code::Protocol, "the remote program has a key of another kind"))
}

/// A remote program that UDP does not reach.
struct Blocked<'a> {
    addresses: &'a [SocketAddr],
    why: &'a Error,
    waited: Duration,
    limit: Duration,
}

impl Blocked<'_> {
    /// `intro` stands before the addresses and `name` behind them. `range`: the ports that the user has chosen.
    fn error(&self, intro: &str, name: &str, range: Option<(u16, u16)>) -> Error {
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
        let blocked = Error::new(Code::UdpBlocked, format!("{intro}{tried}{name}{why}"));
        match range {
            // Open ports lead nowhere, and the reason has its own next step.
            _ if self.why.code == Code::NoRoute => blocked,
            Some((low, high)) => {
                blocked.remedy(format!("let firewalls pass UDP ports {low}-{high}, those of --port-range"))
            }
            None => blocked.remedy(
                "choose ports with --port-range, for instance 50000-50100, and let firewalls pass them, since the port is \
                 new each time",
            ),
        }
    }
}

/// Where the remote program may be reached: the host of ssh, and the address under which ssh reached it.
fn addresses(settings: &str, ready: &Ready) -> Vec<SocketAddr> {
    let value = |key: &str| setting(settings, key);
    let passes_hosts = value("proxyjump").is_some() || value("proxycommand").is_some();
    let named = value("hostname").and_then(|name| (name, ready.port).to_socket_addrs().ok());
    let mut all: Vec<SocketAddr> = named.into_iter().flatten().collect();
    let is_own = value("hostname").is_none() || all.iter().any(|at| at.ip().to_canonical().is_loopback());
    if let Some(address) = ready.address.map(|address| address.to_canonical()).filter(|at| is_of_a_host(*at, is_own)) {
        let at = SocketAddr::from((address, ready.port));
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

/// Whether another host can have this address. The remote program says which one it has, and may say anything. Only one that ssh
/// reached at an address of this host `is_own`.
fn is_of_a_host(address: IpAddr, is_own: bool) -> bool {
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !address.is_unspecified() && !address.is_multicast() && !is_broadcast && (is_own || !address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocked_udp_has_its_true_reason_and_ports_to_open() {
        let addresses = ["192.0.2.7:41000".parse().unwrap()];
        let said = |code, waited, limit, range| {
            let why = Error::new(code, "no route to 192.0.2.7:41000");
            let blocked = Blocked { addresses: &addresses, why: &why, waited, limit };
            blocked.error("UDP does not reach ", " (far)", range).to_string()
        };
        let silent = said(Code::ConnectTimeout, UDP_DEAD, UDP_DEAD, None);
        assert!(silent.contains("192.0.2.7:41000 (far) within 3 s; choose ports with --port-range, for"), "{silent}");
        let silent =
            said(Code::ConnectTimeout, Duration::from_secs(1), Duration::from_millis(500), Some((47_000, 47_001)));
        assert!(silent.contains("within 500 ms; let firewalls pass UDP ports 47000-47001"), "{silent}");
        let unrouted = said(Code::NoRoute, Duration::from_millis(400), UDP_DEAD, None);
        assert_eq!(unrouted, "UDP does not reach 192.0.2.7:41000 (far) (no route to 192.0.2.7:41000)");
    }

    #[test]
    fn the_name_of_ssh_comes_first_and_behind_a_jump_host_the_remote_end_knows_better() {
        let ready =
            Ready { key: String::new(), port: 7, address: "10.0.0.9".parse().ok(), takes_one: false, throttles: false };
        let direct = addresses("user me\nhostname 192.0.2.1\nport 22\nproxyjump none\n", &ready);
        assert_eq!(direct, ["192.0.2.1:7".parse().unwrap(), "10.0.0.9:7".parse().unwrap()]);
        let behind = addresses("hostname 192.0.2.1\nproxyjump jump\n", &ready);
        assert_eq!(behind, ["10.0.0.9:7".parse().unwrap(), "192.0.2.1:7".parse().unwrap()]);
        let same = addresses("hostname 10.0.0.9\n", &ready);
        assert_eq!(same.len(), 1);
        assert!(addresses("", &Ready { address: None, ..ready }).is_empty());
    }

    #[test]
    fn a_remote_program_names_no_address_that_another_host_cannot_have() {
        let said = |settings: &str, address: &str| {
            let address = Some(address.parse().unwrap());
            let ready = Ready { key: String::new(), port: 7, address, takes_one: false, throttles: false };
            addresses(settings, &ready).iter().any(|at| Some(at.ip()) == address.map(|at: IpAddr| at.to_canonical()))
        };
        let far = "hostname 192.0.2.1\n";
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "::ffff:127.0.0.1",
            "224.0.0.1",
            "ff02::1",
            "0.0.0.0",
            "::",
            "255.255.255.255",
        ] {
            assert!(!said(far, address), "{address}");
            assert!(!said("hostname 192.0.2.1\nproxyjump jump\n", address), "{address}");
        }
        assert!(said(far, "10.0.0.9") && said(far, "2001:db8::9"));
        // Ssh itself reached this host.
        for own in ["hostname 127.0.0.1\n", "hostname ::1\n"] {
            assert!(said(own, "127.0.0.1") && said(own, "::1"), "{own}");
            assert!(!said(own, "224.0.0.1") && !said(own, "0.0.0.0"), "{own}");
        }
    }
}
