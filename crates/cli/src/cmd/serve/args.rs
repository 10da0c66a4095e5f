//! The command line of `serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use farhaul_units::parse_duration;

use crate::options::{ClientKeys, Transport};
use crate::values::HostPort;

/// Serve a directory to `farhaul copy`
///
/// Clients cannot leave the directory, not even through links. This user's key may read and write, unless --read-only is
/// given. Other keys may do what their lines in authorized_keys say: without path=DIR,write they only read. With
/// --any-client, all keys without a line only read, at 1 Gbit/s or --rate together. Runs until stopped:
///
///     farhaul serve --root /data --listen :9000
///
/// A root with private keys below it, as a home directory has them, is not served to everybody unless --expose-private-keys says so.
///
/// With --plain, everybody who reaches the port may read and write. With --plain and --protocol tsunami or rbudp it also serves the clients of the original programs, read only and not verified:
///
///     farhaul serve --plain --protocol tsunami:secret=kitten \
///         --root /data --listen :46224
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct ServeArgs {
    /// Directory to serve; the root of all paths of peers
    #[arg(long, env = "FARHAUL_ROOT", value_name = "DIR")]
    pub(crate) root: PathBuf,
    /// UDP port: host:port, or :port for all addresses of this machine [default: the socket of the service manager]
    #[arg(long, env = "FARHAUL_LISTEN", value_name = "ADDR")]
    pub(crate) listen: Option<HostPort>,
    /// Settings of a daemon: the options of this verb, as in listen = ":9000". An unknown one refuses the start
    ///
    /// The keys are files beside it, unless it names others: `host_key`, which is made on the first start, and
    /// `authorized_keys`. Its section [plain] has the networks of plain clients: allow = ["10.0.0.0/8"], write = false,
    /// rate = "1gbit".
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Do not have the kernel confine the server to its root (Landlock), keep its capabilities and core dumps
    #[arg(long, env = "FARHAUL_UNCONFINED", value_parser = clap::builder::BoolishValueParser::new(), hide_short_help = true)]
    pub(crate) unconfined: bool,
    /// Refuse copies to this server
    #[arg(long, env = "FARHAUL_READ_ONLY", value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) read_only: bool,
    /// Largest number of concurrent copies; further ones are refused as busy
    #[arg(long, env = "FARHAUL_MAX_SESSIONS", value_name = "N", default_value_t = 64, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) max_sessions: usize,
    /// End a session that moves less than 64 kB in this time, so that it holds no place for ever; 0s: never
    #[arg(long, env = "FARHAUL_IDLE_TIMEOUT", value_name = "TIME", default_value = "15min", value_parser = parse_duration, hide_short_help = true)]
    pub(crate) idle_timeout: Duration,
    /// Serve a root with private keys below it, such as a home directory, to callers that nobody knows
    #[arg(long, hide_short_help = true)]
    pub(crate) expose_private_keys: bool,
    /// Report progress at this interval: 1s [default: none]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, hide_short_help = true)]
    pub(crate) interval: Option<Duration>,
    /// Serve figures for Prometheus at http://ADDR/metrics, unencrypted: HOST:PORT, or :PORT for this machine alone
    #[arg(long, env = "FARHAUL_METRICS", value_name = "ADDR", value_parser = metrics_address, hide_short_help = true)]
    pub(crate) metrics: Option<HostPort>,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) client_keys: ClientKeys,
}

/// An address for figures. Without a host it is loopback: everybody who reaches it can read them.
fn metrics_address(text: &str) -> Result<HostPort, String> {
    match text.strip_prefix(':') {
        Some(port) => format!("127.0.0.1:{port}").parse(),
        None => text.parse(),
    }
}

impl ServeArgs {
    /// Whether it gives up all capabilities once its port is open. A privileged user who starts a server by hand may want to serve
    /// what only that user can read.
    pub(crate) const fn gives_up_capabilities(&self) -> bool {
        self.config.is_some() && !self.unconfined
    }
}
