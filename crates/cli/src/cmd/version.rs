//! `version`: the version and the supported protocols.

use clap::Args;
use serde_json::json;

use crate::exit::Fault;
use crate::options::Protocol;
use crate::output::print;

/// Print the version and the supported protocols
#[derive(Args, Debug)]
pub(crate) struct VersionArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &VersionArgs) -> Result<(), Fault> {
    let version = env!("CARGO_PKG_VERSION");
    let session = farhaul_session::VERSION;
    if args.json {
        let record = json!({
            "name": "farhaul",
            "version": version,
            "protocols": Protocol::ALL.map(Protocol::name),
            "session_protocol": { "newest": session, "oldest": farhaul_session::OLDEST_VERSION },
            "security": ["none"],
            "os": std::env::consts::OS,
            "architecture": std::env::consts::ARCH,
        });
        print(&format!("{record}\n"));
    } else {
        print(&format!(
            "farhaul {version}\nspeaks UDT4, the UDT of 2004, and session protocol {session}; encryption: none yet\n"
        ));
    }
    Ok(())
}
