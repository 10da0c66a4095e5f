//! The path to a host that ssh reaches: ssh starts a remote program there, as for a copy, and that answers at a UDP port.

use std::net::SocketAddr;

use farhaul_transfer::Ssh;
use farhaul_transfer::internal::keys::identity;
use farhaul_transfer::internal::remote::Answering;

use super::examined::Examined;
use super::finding::Finding;
use super::path::{measure, open, route};
use super::reach::{self, Heard};
use super::{firewall, handshake};
use crate::exit::{Code, Fault};
use crate::output::Output;
use crate::output::observer::{Reporter, Shown};

/// Ports to open for remote programs where the user has chosen none: enough for copies at the same time, and of the range that the
/// book uses.
const ADVISED: (u16, u16) = (50_000, 50_100);

/// Examines the path to `host`. Returns the fault of a host that cannot be reached by ssh, or by UDP.
pub(super) fn examine(
    (host, options): (&str, &Ssh),
    examined: &Examined<'_>,
    output: &Output,
    mut report: impl FnMut(Finding),
) -> Result<Option<Fault>, Fault> {
    let (context, pair) = (examined.context, identity::generate()?);
    let environment = context.environment(Reporter::new(output.clone(), Shown::default()));
    let started = Answering::start(&environment, options, host, pair.public());
    let answering = match started {
        _ if context.interrupt.is_stopping() => return Ok(None),
        Ok(started) => started,
        Err(fault) => {
            report(judge_ssh(host, options, &fault));
            return Ok(Some(fault));
        }
    };
    report(Finding::ok("ssh", format!("ssh reaches {host}, and farhaul there has opened UDP port {}", answering.port)));
    let mut probes = match open(host, answering.addresses.clone()) {
        Ok(probes) => probes,
        Err(failed) => {
            let (finding, fault) = *failed;
            report(finding);
            return Ok(Some(fault));
        }
    };
    let (Heard::Answer { index, forms, round_trip }, false) =
        (reach::probe(&mut probes, &context.interrupt), context.interrupt.is_stopping())
    else {
        if context.interrupt.is_stopping() {
            return Ok(None);
        }
        report(route(&probes[0]));
        let peers: Vec<SocketAddr> = probes.iter().map(|probe| probe.peer()).collect();
        let (finding, fault) = judge_blocked(host, &peers, options.port_range);
        report(finding);
        return Ok(Some(fault));
    };
    let probe = &mut probes[index];
    report(route(probe));
    report(reach::judge_answer(probe.peer(), &forms));
    let server = handshake::Server { name: host, peer: probe.peer(), round_trip };
    report(handshake::examine_remote(&server, pair, answering.key, &context.interrupt));
    measure(probe, &forms, round_trip, examined.packet).into_iter().for_each(report);
    Ok(None)
}

/// Ssh did not start a remote program.
fn judge_ssh(host: &str, options: &Ssh, fault: &Fault) -> Finding {
    let fix = match fault.code {
        Code::RemoteProgramMissing | Code::Protocol if !options.names_program() => {
            format!("farhaul copy --install FILE {host}:")
        }
        _ => options.trial(host),
    };
    Finding::problem("ssh", fault.to_string()).fix(fix)
}

/// Ssh reaches the host, and UDP does not. `range`: the ports that the user has chosen. With the fault of the program.
fn judge_blocked(host: &str, peers: &[SocketAddr], range: Option<(u16, u16)>) -> (Finding, Fault) {
    let tried = peers.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" and ");
    let next = match range {
        Some(_) => "open these ports there".to_owned(),
        None => format!("open ports there, and copy with --port-range {}-{}", ADVISED.0, ADVISED.1),
    };
    let message = format!(
        "ssh reaches {host}, and UDP does not reach {tried}: copies go through ssh, which is slower, until you {next}"
    );
    let ports = range.unwrap_or(ADVISED);
    Finding::problem("udp", message).fix_there(firewall::opening_range(ports)).and_fault(Code::UdpBlocked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_path_names_the_ports_to_open() {
        let peers = ["192.0.2.7:41000".parse().unwrap()];
        let (finding, fault) = judge_blocked("far", &peers, None);
        assert!(finding.message.contains("192.0.2.7:41000") && finding.message.contains("--port-range 50000-50100"));
        assert!(finding.fix.unwrap().contains("ufw allow 50000:50100/udp"));
        assert_eq!(fault.code, Code::UdpBlocked);
        let (finding, _) = judge_blocked("far", &peers, Some((47_000, 47_001)));
        assert!(finding.fix.unwrap().contains("udp dport 47000-47001 accept"));
    }

    #[test]
    fn a_missing_program_is_installed_by_a_copy_and_ssh_is_tried_by_hand() {
        let judged = |code, ssh: &Ssh| judge_ssh("far", ssh, &Fault::new(code, "why")).fix.unwrap();
        let with = |change: fn(&mut Ssh)| {
            let mut ssh = Ssh::default();
            change(&mut ssh);
            ssh
        };
        let named = with(|ssh| ssh.remote_path = Some("/f".to_owned()));
        assert_eq!(judged(Code::RemoteProgramMissing, &Ssh::default()), "farhaul copy --install FILE far:");
        assert_eq!(judged(Code::RemoteProgramMissing, &named), "ssh far true");
        assert_eq!(judged(Code::SshFailed, &with(|ssh| ssh.port = Some(2_222))), "ssh -p 2222 far true");
    }
}
