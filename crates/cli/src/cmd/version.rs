//! `version`: the version and the supported protocols.

use clap::Args;
use farhaul::registry::protocols;
use farhaul::security::{Choices, Cipher, PROTECTION_VERSION};
use serde_json::json;

use crate::exit::Fault;
use crate::output::{print, print_json};

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
    let protocols: Vec<&str> = protocols().iter().map(|entry| entry.name).collect();
    let choices = Choices::with(Cipher::Auto);
    if args.json {
        let record = json!({
            "name": "farhaul",
            "version": version,
            "protocols": protocols,
            "session_protocol": { "newest": session, "oldest": farhaul_session::OLDEST_VERSION },
            "security": ["tls1.3", "none"],
            "groups": choices.groups,
            "ciphers": choices.ciphers,
            "protection_version": PROTECTION_VERSION,
            "os": std::env::consts::OS,
            "architecture": std::env::consts::ARCH,
        });
        print_json(&record);
    } else {
        print(&format!(
            "farhaul {version}\nspeaks {}, and session protocol {session}\nencrypts with TLS 1.3, {}, {}, packet protection \
             version {PROTECTION_VERSION}; --plain does not\n",
            protocols.join(", "),
            choices.groups.join(" or "),
            choices.ciphers.join(" or "),
        ));
    }
    Ok(())
}
