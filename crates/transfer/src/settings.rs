//! Settings of connections, and the ports that they configure.

mod key_log;
mod security;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use farhaul::cc::Spec;
use farhaul::cc::registry::Revision;
use farhaul::probe::{CachedRate, cached_rate};
use farhaul::security::{PlainClients, Security};
use farhaul::{Builder, Endpoint, Error as ConnectionError, MinProgress, Protocol, RecentPaths};
use farhaul_session::SenderSettings;
use farhaul_units::{ByteSize, Rate};

pub use security::SecuritySettings;

use self::key_log::KeyLogFile;
use crate::admission::Admission;
use crate::error::{Code, Error};
use crate::limit::Caps;
use crate::report::{Direction, Report};
use crate::throttle::SCAVENGER;

/// Settings of every connection of a copy or a server.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "internal"), non_exhaustive)]
pub struct Settings {
    /// The wire protocol with its options.
    pub protocol: Protocol,
    /// The congestion controller with its options; `None` for that of the protocol.
    pub controller: Option<Spec>,
    /// Gives way to all other traffic, in place of `controller`. The sender of files that this side asks for does so as well.
    pub background: bool,
    /// Cap on the sending rate, headers and retransmissions included. A sender of files keeps it as well. For protocols without congestion control it is the rate,
    /// which is found without it.
    pub rate: Option<Rate>,
    /// Largest packet in bytes, IP and UDP headers included; `None` to find it by probes.
    pub mtu: Option<u32>,
    /// Cap on each buffer; `None` to size them to the path.
    pub buffer: Option<ByteSize>,
    /// A connection is given up after the peer has been silent for so long.
    pub timeout: Duration,
    /// An attempt to connect is given up after this time.
    pub connect_timeout: Duration,
    /// Whether connections begin with what earlier ones found of their path.
    pub remembers_paths: bool,
    /// A file that takes the secrets of connections, for debugging alone: whoever has it can read and forge everything.
    pub key_log: Option<PathBuf>,
    /// The protection of connections.
    pub security: SecuritySettings,
}

/// Time of silence after which a peer is given up (command-line contract, time-outs).
const TIMEOUT: Duration = Duration::from_secs(30);
/// Time after which an attempt to connect is given up (command-line contract, time-outs).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

impl Default for Settings {
    fn default() -> Self {
        Self {
            protocol: Protocol::default(),
            controller: None,
            background: false,
            rate: None,
            mtu: None,
            buffer: None,
            timeout: TIMEOUT,
            connect_timeout: CONNECT_TIMEOUT,
            remembers_paths: true,
            key_log: None,
            security: SecuritySettings::default(),
        }
    }
}

/// What this user's connections have found of paths. All ports of this process share it, so that one connection begins with it.
static RECENT: OnceLock<Arc<RecentPaths>> = OnceLock::new();

impl Settings {
    /// Opens a UDP port for these clients. `None` for plain connections.
    ///
    /// # Errors
    /// The port cannot be opened, or a setting is out of its range.
    pub fn bind(&self, address: SocketAddr, clients: Option<&Admission>) -> Result<Endpoint, Error> {
        self.open(self.builder(), address, clients.map(Admission::security))
    }

    /// Opens a daemon's UDP port. Its connections require a minimum progress, so that a trickling peer cannot hold one.
    ///
    /// # Errors
    /// As for [`bind`](Self::bind).
    pub fn bind_daemon(
        &self,
        address: SocketAddr,
        clients: Option<&Admission>,
        plain: Option<PlainClients>,
    ) -> Result<Endpoint, Error> {
        self.open(self.daemon(plain), address, clients.map(Admission::security))
    }

    fn daemon(&self, plain: Option<PlainClients>) -> Builder {
        // It may have no right to write outside of its root.
        let builder = self.with_memory(|| Arc::new(RecentPaths::in_memory())).min_progress(MinProgress::DAEMON);
        match plain {
            Some(plain) => builder.plain_clients(plain),
            None => builder,
        }
    }

    /// The same with a UDP port that the service manager has opened.
    ///
    /// # Errors
    /// As for [`bind`](Self::bind).
    pub fn adopt_daemon(
        &self,
        socket: UdpSocket,
        clients: Option<&Admission>,
        plain: Option<PlainClients>,
    ) -> Result<Endpoint, Error> {
        let builder = self.daemon(plain);
        let address = socket.local_addr()?;
        self.protected(builder, clients.map(Admission::security))?
            .adopt(socket)
            .map_err(|error| of_port(error, address))
    }

    /// Binds the socket of a daemon, to be adopted with fewer rights.
    ///
    /// # Errors
    /// As for [`bind`](Self::bind).
    pub fn socket(&self, address: SocketAddr) -> Result<UdpSocket, Error> {
        self.builder().socket(address).map_err(|error| of_port(error, address))
    }

    /// Opens a UDP port with this protection, or for plain connections.
    ///
    /// # Errors
    /// As for [`bind`](Self::bind).
    pub fn bind_with(&self, address: SocketAddr, security: Option<Security>) -> Result<Endpoint, Error> {
        self.open(self.builder(), address, security)
    }

    /// Opens a UDP port in the range for all addresses of this host, with this protection.
    ///
    /// # Errors
    /// All ports of the range are taken, or as for [`bind`](Self::bind).
    pub(crate) fn bind_in(&self, ports: Option<(u16, u16)>, security: &Security) -> Result<Endpoint, Error> {
        let any = match UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)) {
            Ok(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
            Err(_) => Ipv4Addr::UNSPECIFIED.into(),
        };
        let Some((low, high)) = ports else {
            return self.bind_with((any, 0).into(), Some(security.clone()));
        };
        let mut taken = None;
        for port in low..=high {
            match self.bind_with((any, port).into(), Some(security.clone())) {
                Err(error) if error.code == Code::AddressInUse => taken = Some(error),
                opened => return opened,
            }
        }
        Err(taken.map_or_else(
            || Error::usage("‹port-range› is empty"),
            |_| {
                Error::new(Code::AddressInUse, format!("all UDP ports from {low} to {high} are taken"))
                    .remedy("widen ‹port-range›")
            },
        ))
    }

    /// Opens a UDP port of the system's choice for a connection to `peer`. A search for the rate begins with what was found by a
    /// profile of the path.
    ///
    /// # Errors
    /// As for [`bind`](Self::bind).
    pub fn bind_for(&self, peer: SocketAddr, security: Option<Security>) -> Result<Endpoint, Error> {
        let mut builder = self.builder().towards(peer.ip());
        if let Some(known) = self.profiled(peer) {
            builder = builder.first_rate(known.first_rate());
        }
        let address = match peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        self.open(builder, address, security)
    }

    /// Whether several connections can carry one stream: only those of UDT4 share a path fairly with each other.
    pub fn has_flows(&self) -> bool {
        self.protocol.entry().name == Protocol::default().entry().name
    }

    /// Time for the first answer of a peer, once it is connected.
    pub(crate) fn answer_timeout(&self) -> Duration {
        self.connect_timeout.min(self.timeout)
    }

    /// The best rate of the path to `peer` by a recent profile, if the rate is to be found.
    pub fn profiled(&self, peer: SocketAddr) -> Option<CachedRate> {
        if self.rate.is_none() && self.protocol.finds_rate() { cached_rate(peer) } else { None }
    }

    /// The effective congestion controller: the chosen one, or the protocol's. `None` if the protocol's own rules govern the rate.
    pub fn effective_controller(&self) -> Option<Spec> {
        let default = self.protocol.controller()?;
        if self.background {
            return SCAVENGER.parse().ok();
        }
        Some(self.controller.clone().unwrap_or(default))
    }

    /// The effective congestion controller in reports.
    pub fn controller_name(&self) -> String {
        self.effective_controller().map_or_else(|| "none".to_owned(), |controller| controller.to_string())
    }

    /// The report of a session with these settings that has moved no data yet.
    pub fn report(&self, direction: Direction) -> Report {
        Report {
            direction: Some(direction),
            controller: self.controller_name(),
            protocol: self.protocol.to_string(),
            security: Some(self.security.name()),
            ..Report::default()
        }
    }

    /// The caps on a sender.
    pub const fn caps(&self) -> Caps {
        Caps { rate: self.rate, buffer: self.buffer, fed: false }
    }

    /// What a receiver with these settings asks of its sender.
    pub(crate) const fn of_sender(&self) -> SenderSettings {
        SenderSettings { rate: self.rate, background: self.background }
    }

    /// The same settings with a connect time-out of `most` at most.
    pub(crate) fn connecting_within(&self, most: Duration) -> Self {
        Self { connect_timeout: self.connect_timeout.min(most), ..self.clone() }
    }

    /// Checks that the program on a remote host, which sends, can have the controller.
    ///
    /// # Errors
    /// The code of the controller is in this process alone.
    pub(crate) fn check_remote_sender(&self) -> Result<(), Error> {
        match self.effective_controller().filter(|controller| !controller.is_registered()) {
            None => Ok(()),
            Some(own) => Err(Error::usage(format!(
                "the controller '{own}' is code of this program, and the program on the other host, which sends, does not have it"
            ))
            .remedy("name a shipped one by ‹controller›, or send from a program there that has it")),
        }
    }

    /// The settings for the program on a remote host, as on its command line. `receives` is whether it only receives.
    ///
    /// A receiver needs no controller, and the installed program may not know one that this program has added.
    pub(crate) fn words(&self, receives: bool) -> Vec<String> {
        let is_known = |controller: &&Spec| {
            controller.is_registered() && (!receives || controller.revision() == Revision::BuiltIn)
        };
        let micros = |time: Duration| format!("{}us", time.as_micros());
        let mut words = vec![
            format!("--protocol={}", self.protocol),
            format!("--timeout={}", micros(self.timeout)),
            format!("--connect-timeout={}", micros(self.connect_timeout)),
            format!("--cipher={}", self.security.cipher_name()),
        ];
        words.extend((!self.remembers_paths).then(|| "--no-path-memory".to_owned()));
        words.extend(self.background.then(|| "--background".to_owned()));
        words.extend(self.mtu.map(|mtu| format!("--mtu={mtu}")));
        words.extend(self.controller.as_ref().filter(is_known).map(|controller| format!("--controller={controller}")));
        words.extend(self.rate.map(|rate| format!("--rate={}bit", rate.bits_per_second())));
        words.extend(self.buffer.map(|ByteSize(bytes)| format!("--buffer={bytes}B")));
        words
    }

    fn builder(&self) -> Builder {
        self.with_memory(|| Arc::clone(RECENT.get_or_init(|| Arc::new(RecentPaths::of_user()))))
    }

    fn with_memory(&self, memory: fn() -> Arc<RecentPaths>) -> Builder {
        let mut builder = Endpoint::builder()
            .protocol(self.protocol.clone())
            .connect_timeout(self.connect_timeout)
            .peer_timeout(self.timeout)
            .linger(self.timeout);
        builder = match self.mtu {
            Some(mtu) => builder.mss(mtu),
            None => builder.probe_mtu(),
        };
        if self.remembers_paths {
            builder = builder.path_memory(memory());
        }
        if let Some(controller) = self.effective_controller() {
            builder = builder.controller_with(move |seed| controller.build(seed));
        }
        if let Some(rate) = self.rate {
            builder = builder.max_rate(rate);
        }
        if let Some(ByteSize(bytes)) = self.buffer {
            builder = builder.send_buffer(bytes).recv_buffer(bytes);
        }
        builder
    }

    fn open(&self, builder: Builder, address: SocketAddr, security: Option<Security>) -> Result<Endpoint, Error> {
        self.protected(builder, security)?.bind(address).map_err(|error| of_port(error, address))
    }

    fn protected(&self, builder: Builder, security: Option<Security>) -> Result<Builder, Error> {
        match (security, &self.key_log) {
            (Some(security), Some(file)) => Ok(builder.secure(security.unsafe_key_log(KeyLogFile::open(file)?))),
            (Some(security), None) => Ok(builder.secure(security)),
            (None, Some(_)) => {
                Err(Error::usage("‹unsafe-keylog› has nothing to write with ‹plain›").remedy("leave one of them out"))
            }
            (None, None) => Ok(builder.plain()),
        }
    }
}

/// The error of a port that could not be opened.
pub fn of_port(error: ConnectionError, address: SocketAddr) -> Error {
    match error {
        ConnectionError::InvalidOption { option, range } => {
            Error::usage(format!("{} must be {range}", option_of(option)))
        }
        error => Error::of_connection(&error, &address),
    }
}

/// The option of the command behind a method of the library's builder.
fn option_of(method: &str) -> &str {
    match method {
        "mss" => "‹mtu›",
        "max_rate" => "‹rate›",
        "send_buffer and recv_buffer" => "‹buffer›",
        "peer_timeout" | "linger" => "‹timeout›",
        "connect_timeout" | "rendezvous_timeout" => "‹connect-timeout›",
        other => other,
    }
}
