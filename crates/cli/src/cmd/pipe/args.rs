//! The command line of `pipe`.

use clap::Args;
use farhaul_session::MAX_FLOWS;

use crate::exit::Fault;
use crate::options::{ClientKeys, ServerKeys, Transport, is_original_stream};
use crate::values::HostPort;

/// Connect stdin and stdout of two hosts, as netcat does
///
/// Each direction ends with its input, and the program once both have ended. A side that only receives needs /dev/null as its
/// input. JSON records go to stderr, because stdout is data.
///
///     farhaul pipe --listen :9000 < /dev/null > copy.tar
///     tar c data | farhaul pipe --connect host:9000
///
/// The connection is encrypted. The listener admits this user's key and those in authorized_keys. With --plain this is raw
/// UDT4, compatible with any libudt program, and anybody can read and change the data. There, and with other protocols than
/// udt, one direction cannot end alone: the first input to end closes both, and a side that may miss a part says so.
///
/// With --protocol sabul, this is the format of SABUL 2.1, whose sender listens. The end of the stream is the close of its
/// connection, so nothing is verified.
///
///     farhaul pipe --plain --protocol sabul --listen :7000 < file
///     farhaul pipe --plain --protocol sabul --connect host:7000 > file
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct PipeArgs {
    /// Accept one connection on this UDP port; with --rendezvous, the local port
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<HostPort>,
    /// Connect to this address
    #[arg(long, value_name = "ADDR")]
    pub(crate) connect: Option<HostPort>,
    /// Connect from both sides at once, through most NATs; each side gives --listen LOCAL --connect PEER. Encrypted, each side
    /// knows the other one by known_hosts or --host-key
    #[arg(long, requires = "listen", requires = "connect")]
    pub(crate) rendezvous: bool,
    /// Stay connected for the other direction after the input ends, where one direction cannot end alone (--plain)
    #[arg(long)]
    pub(crate) wait: bool,
    /// Carry the stream over N connections, each with a port and a thread of its own: from 1 to 16. The connecting side says how
    /// many, and the listener follows
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "rendezvous",
          value_parser = clap::value_parser!(u8).range(1..=i64::from(MAX_FLOWS)))]
    pub(crate) flows: u8,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) server_keys: ServerKeys,
    #[command(flatten)]
    pub(crate) client_keys: ClientKeys,
}

impl PipeArgs {
    /// Whether the other end is an original program.
    pub(crate) fn has_original(&self) -> bool {
        is_original_stream(&self.transport.protocol()).is_ok_and(|is_original| is_original)
    }

    /// Refuses a command line that names no other side, or two.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        if self.listen.is_some() && self.connect.is_some() && !self.rendezvous {
            return Err(Fault::usage("--listen and --connect together need --rendezvous; otherwise give one of them"));
        }
        if self.listen.is_none() && self.connect.is_none() {
            return Err(Fault::usage(
                "give --listen ADDR to wait for the other side, or --connect ADDR to connect to it",
            ));
        }
        Ok(())
    }
}
