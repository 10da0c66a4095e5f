//! Signs of a firewall that drops what nobody asked for. Rules are readable by root alone, and their managers by all.

use std::fmt::Display;
use std::fs;
use std::process::{Command, Stdio};

use super::finding::Finding;

/// The port in commands that open one.
const EXAMPLE_PORT: u16 = 9_000;

/// What was found of firewalls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Signs {
    /// `ufw` is switched on.
    pub(super) ufw: bool,
    /// `firewalld` runs.
    pub(super) firewalld: bool,
    /// The output of `nft list ruleset`, if it may be read.
    pub(super) nft: Option<String>,
    /// The output of `iptables -S INPUT`, if it may be read.
    pub(super) iptables: Option<String>,
}

pub(super) fn examine() -> Finding {
    judge_firewall(&Signs {
        ufw: fs::read_to_string("/etc/ufw/ufw.conf").is_ok_and(|text| is_enabled(&text)),
        firewalld: runs("firewalld"),
        nft: output("nft", &["list", "ruleset"]),
        iptables: output("iptables", &["-S", "INPUT"]),
    })
}

/// Whether the settings of `ufw` switch it on.
fn is_enabled(text: &str) -> bool {
    text.lines().any(|line| line.trim().replace(' ', "").eq_ignore_ascii_case("enabled=yes"))
}

/// Whether a process of this name runs.
fn runs(name: &str) -> bool {
    let is_it = |process: fs::DirEntry| {
        fs::read_to_string(process.path().join("comm")).is_ok_and(|command| command.trim_end() == name)
    };
    fs::read_dir("/proc").into_iter().flatten().flatten().any(is_it)
}

/// What a program prints, if it is there and permitted.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let done = Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Whether a chain of `nft list ruleset` for packets to this machine drops or rejects what no rule accepts.
fn nft_drops(rules: &str) -> bool {
    rules.lines().any(|line| line.contains("hook input") && line.contains("policy drop"))
}

/// Whether `iptables -S INPUT` drops what no rule accepts.
fn iptables_drops(rules: &str) -> bool {
    rules.lines().any(|line| matches!(line.trim(), "-P INPUT DROP" | "-P INPUT REJECT"))
}

/// The commands that open a UDP port on a host whose firewall is not known, one a line.
pub(super) fn opening(port: u16) -> String {
    format!("{}\n{}\n{}", ufw(port), firewall_cmd(port), nft(port))
}

/// The same for all ports of a range.
pub(super) fn opening_range((low, high): (u16, u16)) -> String {
    let (colon, dash) = (format!("{low}:{high}"), format!("{low}-{high}"));
    format!("{}\n{}\n{}", ufw(colon), firewall_cmd(&dash), nft(&dash))
}

fn ufw(ports: impl Display) -> String {
    format!("sudo ufw allow {ports}/udp")
}

fn firewall_cmd(ports: impl Display) -> String {
    format!("sudo firewall-cmd --add-port={ports}/udp")
}

fn nft(ports: impl Display) -> String {
    format!("sudo nft add rule inet filter input udp dport {ports} accept")
}

/// A firewall matters where this machine listens.
pub(super) fn judge_firewall(signs: &Signs) -> Finding {
    let advice = |who: &str, fix: String| {
        let message = format!("{who}: a port that listens here must be opened, for instance {EXAMPLE_PORT}");
        Finding::advice("firewall", message).fix(fix)
    };
    let iptables = || format!("sudo iptables -I INPUT -p udp --dport {EXAMPLE_PORT} -j ACCEPT");
    match signs {
        Signs { ufw: true, .. } => advice("ufw is active", ufw(EXAMPLE_PORT)),
        Signs { firewalld: true, .. } => advice("firewalld is active", firewall_cmd(EXAMPLE_PORT)),
        Signs { nft: Some(rules), .. } if nft_drops(rules) => {
            advice("nftables drops what no rule accepts", nft(EXAMPLE_PORT))
        }
        Signs { iptables: Some(rules), .. } if iptables_drops(rules) => {
            advice("iptables drops what no rule accepts", iptables())
        }
        Signs { nft: None, iptables: None, .. } => {
            Finding::ok("firewall", "no sign of one (the rules of nftables and iptables could not be read)")
        }
        _ => Finding::ok("firewall", "none on this machine drops what no rule accepts"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingState;
    use super::*;

    const NFT: &str = "table inet filter {\n\tchain input {\n\t\ttype filter hook input priority filter; policy drop;\n\t}\n\
        \tchain forward {\n\t\ttype filter hook forward priority filter; policy accept;\n\t}\n}\n";

    #[test]
    fn each_firewall_has_its_command() {
        let none = Signs::default();
        for (signs, word) in [
            (Signs { ufw: true, ..none.clone() }, "ufw allow 9000/udp"),
            (Signs { firewalld: true, ..none.clone() }, "firewall-cmd --add-port=9000/udp"),
            (Signs { nft: Some(NFT.into()), ..none.clone() }, "nft add rule inet filter input udp dport 9000"),
            (Signs { iptables: Some("-P INPUT DROP\n".into()), ..none.clone() }, "iptables -I INPUT"),
        ] {
            let finding = judge_firewall(&signs);
            assert!(finding.state == FindingState::Advice && finding.fix.unwrap().contains(word), "{word}");
        }
    }

    #[test]
    fn rules_that_accept_are_right_and_rules_that_cannot_be_read_are_unknown() {
        let open = Signs {
            nft: Some(NFT.replace("drop", "accept")),
            iptables: Some("-P INPUT ACCEPT\n".into()),
            ..Signs::default()
        };
        assert!(judge_firewall(&open).message.starts_with("none"));
        let unknown = judge_firewall(&Signs::default());
        assert!(unknown.state == FindingState::Ok && unknown.message.contains("could not be read"));
    }

    #[test]
    fn only_a_chain_of_incoming_packets_counts() {
        assert!(!nft_drops("type filter hook forward priority filter; policy drop;") && !nft_drops(""));
        assert!(is_enabled("# x\nENABLED=yes\n") && !is_enabled("ENABLED=no\n") && !is_enabled("#ENABLED=yes\n"));
    }

    #[test]
    fn a_remote_host_gets_the_commands_of_all() {
        assert_eq!(opening(7).lines().count(), 3);
    }
}
