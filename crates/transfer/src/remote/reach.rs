//! The local side of a copy over SSH: starts the remote program, and reaches it over UDP, or through ssh where UDP is blocked.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use farhaul::security::{KeyPair, PublicKey};
use farhaul_bond::mux::MuxStream;
use farhaul_bond::{BondedStream, First, Flows, Further};
use farhaul_keys::{Server, identity};
use farhaul_session::Bonding;

use super::attempt::{Attempt, NoUdp, OverUdp};
use super::messages::{Call, Failed, Flowing, FromRemote, Hello, OpeningText, Ready, Task, ToRemote};
use super::{RemoteProgram, Ssh, setting, stdout};
use crate::environment::Environment;
use crate::error::{Code, Error};
use crate::event::{Event, Waiting};
use crate::settings::Settings;

/// Time for which UDP alone is tried, once the remote program is ready. On a path whose two round trips take less, such as one of a
/// building, nothing needs to go through ssh, and one connection has all of the data. A stream that has begun by then needs UDP only if
/// it lasts longer.
const HEAD_START: Duration = Duration::from_millis(25);
/// What carries the stream that UDP does not.
const CARRIER: &str = "ssh";
/// Most that ssh prints about its settings, bytes.
const MOST_SETTINGS: u64 = 256 << 10;
/// Most addresses to try at once.
const MOST_ADDRESSES: usize = 6;

/// The flows of what has one connection.
pub(crate) const ONE_FLOW: (Flows, Option<Bonding>) = (Flows::Exactly(1), None);

/// How the local side reaches remote programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OverSsh<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) settings: &'a Settings,
    pub(crate) ssh: &'a Ssh,
    /// This side only sends data.
    pub(crate) only_sends: bool,
    /// The stream needs a connection over UDP.
    pub(crate) needs_udp: bool,
    /// The flows that the user wants, and their offer, which the session may have made.
    pub(crate) flows: (Flows, Option<Bonding>),
    /// What goes with the first message.
    pub(crate) opening: Opening<'a>,
}

/// The bytes of a stream that go to a program together with what it is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Opening<'a> {
    /// None. The stream begins once the program is ready.
    None,
    /// All that this side sends but answers. The stream stays with ssh.
    Whole(&'a [u8]),
    /// The request. Its answer begins through ssh.
    Request(&'a [u8]),
}

impl<'a> Opening<'a> {
    const fn bytes(self) -> &'a [u8] {
        match self {
            Self::None => &[],
            Self::Whole(bytes) | Self::Request(bytes) => bytes,
        }
    }
}

/// A connection, and the remote program behind it, if ssh started one.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) stream: BondedStream,
    pub(crate) far: Option<RemoteProgram>,
    /// What opens further flows. A stream that began through ssh opens its own.
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
    /// The stream to the local program, which leads to the other one once that says so.
    through: MuxStream,
    local: Arc<Mutex<Receiver<ToRemote>>>,
}

impl Other {
    /// The program that the near one names.
    pub(crate) fn new(
        call: Call,
        identity: KeyPair,
        ports: Option<(u16, u16)>,
        (through, local): (MuxStream, Receiver<ToRemote>),
    ) -> Result<Self, Error> {
        let Call { key, addresses, is_directory, takes_one, name } = call;
        let key = key
            .parse()
            .map_err(|_| Error::new(Code::Protocol, "the other remote program has no key of a known kind"))?;
        let local = Arc::new(Mutex::new(local));
        Ok(Self { identity, name, is_directory, takes_one, key, addresses, ports, through, local })
    }

    /// Asks the local program for the path through it, because of `blocked`. `None` if it gives none.
    fn through(&self, blocked: &Error) -> Option<MuxStream> {
        stdout::send(&FromRemote::Blocked(Failed::from(blocked))).ok()?;
        let answer = self.local.lock().unwrap_or_else(PoisonError::into_inner).recv();
        matches!(answer, Ok(ToRemote::Through)).then(|| self.through.clone())
    }
}

impl Reached {
    /// The error of a copy that failed: what the remote program said explains more.
    pub(crate) fn explained(&mut self, fault: Error) -> Error {
        match self.far.as_mut().map(|far| far.explained(fault.clone())) {
            Some(lost) if lost.code == Code::SshFailed => lost.and("‹detach› lets a copy go on without ssh"),
            Some(explained) => explained,
            None => fault,
        }
    }

    /// A connection over UDP.
    fn over(udp: OverUdp, far: RemoteProgram) -> Self {
        let stream = BondedStream::from(udp.stream);
        far.on_ssh_loss(stream.canceller());
        Self { stream, far: Some(far), further: Some(udp.further) }
    }
}

impl OverSsh<'_> {
    /// Starts a remote program on `host` for this task, and connects to it. The stream begins at once, through ssh unless UDP answers
    /// sooner, and moves to UDP when that answers.
    pub(crate) fn connect(&self, host: &str, task: Task) -> Result<Reached, Error> {
        let Self { environment, settings, ssh, only_sends, .. } = *self;
        let identity = identity::generate()?;
        let mut hello = self.hello(Some(identity.public()), task);
        let needs_udp = self.needs_udp();
        let bonding = match needs_udp || !settings.has_flows() {
            true => None,
            false => Some(self.flows.0.offer_beside_ssh(self.flows.1)?),
        };
        hello.flows = bonding.map(Flowing::from);
        hello.opening = OpeningText::new(self.opening.bytes());
        let (far, ready, addresses) = self.start(host, &hello)?;
        let server = Server::with_key(host.to_owned(), identity, settings.security.cipher, key_of(&ready)?);
        let attempt = Attempt {
            environment: environment.clone(),
            settings: settings.clone(),
            server: Arc::new(server),
            addresses,
            ports: ssh.port_range,
            only_sends,
            words: (format!("SSH reaches {host}, and UDP does not reach "), String::new()),
        };
        match bonding {
            Some(bonding) => match self.opening {
                Opening::None => self.begin(far, &attempt, bonding),
                Opening::Whole(_) => self.stay(far, &attempt, BondedStream::open_from),
                Opening::Request(_) => self.begin_early(far, &attempt, bonding),
            },
            None => match attempt.make() {
                Ok(udp) => {
                    attempt.announce(&udp);
                    Ok(Reached::over(udp, far))
                }
                Err(no_udp) => self.without_udp(far, &attempt, no_udp, needs_udp),
            },
        }
    }

    /// Goes through ssh where UDP is blocked, if that may be.
    fn without_udp(
        &self,
        mut far: RemoteProgram,
        attempt: &Attempt,
        no_udp: NoUdp,
        needs_udp: bool,
    ) -> Result<Reached, Error> {
        let blocked = match no_udp {
            NoUdp::Failed(error) => return Err(far.explained(error)),
            NoUdp::Blocked(blocked) if self.ssh.detach => {
                return Err(blocked.and("‹detach› leaves no SSH connection to copy through"));
            }
            NoUdp::Blocked(blocked) if needs_udp => return Err(blocked),
            NoUdp::Blocked(blocked) => blocked,
        };
        self.environment.events.warn(&slower(&blocked));
        self.stay(far, attempt, |first, _| BondedStream::only(first))
    }

    /// Goes through ssh from the begin to the end.
    fn stay(
        &self,
        far: RemoteProgram,
        attempt: &Attempt,
        open: impl FnOnce(First, u64) -> BondedStream,
    ) -> Result<Reached, Error> {
        let stream = self.opened(&far, open(self.through_ssh(&far, attempt)?, 0));
        Ok(Reached { stream, far: Some(far), further: None })
    }

    /// The stream through ssh to a program, behind its opening.
    fn opened(&self, far: &RemoteProgram, stream: BondedStream) -> BondedStream {
        let stream = stream.after_opening(self.opening.bytes().len());
        stream.set_read_timeout(Some(self.settings.answer_timeout()));
        far.on_ssh_loss(stream.canceller());
        self.environment.cancellation.on_cancel(stream.canceller());
        stream
    }

    /// Whether nothing may go through ssh.
    fn needs_udp(&self) -> bool {
        self.needs_udp || self.ssh.no_fallback || self.ssh.detach
    }

    /// Whether a stream may begin with an opening: nothing that the user wants concerns UDP.
    pub(crate) fn takes_opening(&self) -> bool {
        let (Settings { rate, key_log, .. }, throttle) = (self.settings, &self.environment.throttle);
        !self.needs_udp()
            && self.settings.has_flows()
            && !self.flows.0.are_several()
            && rate.is_none()
            && key_log.is_none()
            && !throttle.is_paused()
            && throttle.rate().flatten().is_none()
    }

    /// The stream through ssh.
    fn through_ssh(&self, far: &RemoteProgram, attempt: &Attempt) -> Result<First, Error> {
        let peer = attempt.addresses.first().copied();
        self.environment.events.send(&Event::Connecting {
            local: None,
            peer,
            first_rate: None,
            carrier: Some(CARRIER),
        });
        let first = First::Ssh(far.stream(self.settings.timeout)?, peer);
        let uncapped = |error| self.environment.connection_error(&error, &CARRIER);
        first.set_max_rate(self.settings.rate).map_err(uncapped)?;
        Ok(first)
    }

    /// Begins the stream over whichever path is open first. That through ssh moves to UDP later.
    fn begin(&self, mut far: RemoteProgram, attempt: &Attempt, bonding: Bonding) -> Result<Reached, Error> {
        let answer = attempt.begin()?;
        let early = match answer.recv_timeout(HEAD_START) {
            Ok(Ok(udp)) => {
                attempt.announce(&udp);
                return Ok(Reached::over(udp, far));
            }
            Ok(Err(NoUdp::Failed(error))) => return Err(far.explained(error)),
            Ok(Err(blocked)) => Some(Err(blocked)),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        };
        let awaited = move || early.or_else(|| answer.recv().ok());
        self.move_later(far, attempt, (bonding, Duration::ZERO), awaited)
    }

    /// The same for a stream that has begun through ssh. One that ends soon needs no UDP.
    fn begin_early(&self, far: RemoteProgram, attempt: &Attempt, bonding: Bonding) -> Result<Reached, Error> {
        let later = attempt.clone();
        self.move_later(far, attempt, (bonding, HEAD_START), move || Some(later.make()))
    }

    /// The stream through ssh, which moves to the connection over UDP that `reach` makes `after` this time.
    fn move_later(
        &self,
        far: RemoteProgram,
        attempt: &Attempt,
        (bonding, after): (Bonding, Duration),
        reach: impl FnOnce() -> Option<Result<OverUdp, NoUdp>> + Send + 'static,
    ) -> Result<Reached, Error> {
        let stream = self.opened(&far, BondedStream::open_from(self.through_ssh(&far, attempt)?, 0));
        let events = self.environment.events.clone();
        let warns = move |why: &str| events.warn(why);
        stream.moves((self.flows.0, bonding, after), warns, move || match reach()? {
            Ok(udp) => Some(Ok((udp.stream, udp.further))),
            Err(NoUdp::Blocked(blocked)) => Some(Err(slower(&blocked))),
            Err(NoUdp::Failed(failed)) => (failed.code != Code::Interrupted).then(|| Err(slower(&failed))),
        })?;
        Ok(Reached { stream, far: Some(far), further: None })
    }

    /// The first message to a remote program that admits `key`.
    pub(crate) fn hello(&self, key: Option<PublicKey>, task: Task) -> Hello {
        Hello {
            key: key.map(|key| key.to_string()),
            options: self.settings.words(matches!(task, Task::Receive { .. })),
            ports: self.ssh.port_range,
            detach: self.ssh.detach,
            ..Hello::of(task)
        }
    }

    /// Starts a remote program. Returns its addresses, too, which may be none.
    pub(crate) fn start(&self, host: &str, hello: &Hello) -> Result<(RemoteProgram, Ready, Vec<SocketAddr>), Error> {
        start(self.environment, (self.ssh, true), host, hello)
    }
}

/// The warning of a stream that stays with ssh.
fn slower(blocked: &Error) -> String {
    format!("{blocked}; the data goes through the SSH connection, which is slower")
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
        let (key, ports) = (Some(admitted.to_string()), ssh.port_range);
        let hello = Hello { key, ports, ..Hello::of(Task::Answer) };
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
pub(crate) fn call(environment: &Environment, settings: &Settings, other: &Other) -> Result<BondedStream, Error> {
    let server = Server::with_key(other.name.clone(), other.identity.clone(), settings.security.cipher, other.key);
    let attempt = Attempt {
        environment: environment.clone(),
        settings: settings.clone(),
        server: Arc::new(server),
        addresses: other.addresses.clone(),
        ports: other.ports,
        only_sends: true,
        // Ssh reached it from elsewhere.
        words: ("UDP does not reach ".to_owned(), format!(" ({})", other.name)),
    };
    let blocked = match attempt.make() {
        Ok(udp) => {
            attempt.announce(&udp);
            return Ok(udp.stream.into());
        }
        Err(NoUdp::Failed(error)) => return Err(error),
        Err(NoUdp::Blocked(blocked)) => blocked,
    };
    let Some(through) = other.through(&blocked) else {
        return Err(environment.cancellation.reason().unwrap_or(blocked));
    };
    let peer = other.addresses.first().copied();
    environment.events.send(&Event::Connecting { local: None, peer, first_rate: None, carrier: Some(CARRIER) });
    let first = First::Ssh(through, peer);
    first.set_max_rate(settings.rate).map_err(|error| environment.connection_error(&error, &CARRIER))?;
    let stream = BondedStream::only(first);
    stream.set_read_timeout(Some(settings.answer_timeout()));
    environment.cancellation.on_cancel(stream.canceller());
    Ok(stream)
}

/// The key of a remote program.
pub(crate) fn key_of(ready: &Ready) -> Result<PublicKey, Error> {
    ready.key.parse().map_err(|_| Error::new(Code::Protocol, "the remote program has a key of another kind"))
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
