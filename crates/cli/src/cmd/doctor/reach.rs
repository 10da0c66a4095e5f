//! UDP to the host: who answers, and what silence means.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use farhaul::path::{Answer, Form, PathProbe};
use farhaul_udp::Clock;

use super::finding::Finding;
use super::firewall;
use super::tcp::{self, Answers};
use crate::exit::{Code, Fault};
use crate::interrupt::Interrupt;

/// Waits for answers, after each of which the questions are repeated. Together they cover a path by satellite.
const WAITS: [Duration; 3] = [Duration::from_millis(400), Duration::from_millis(500), Duration::from_millis(900)];
/// One look at one address.
const LOOK: Duration = Duration::from_millis(10);
/// Time for answers to the other forms, after the first answer.
const OTHERS: Duration = Duration::from_millis(60);
/// Rounds of waiting for them.
const REPEATS: usize = 3;

/// The result of the questions.
#[derive(Debug)]
pub(super) enum Heard {
    /// The address with this index answers these forms.
    Answer { index: usize, forms: BTreeSet<Form>, round_trip: Duration },
    /// The host of this address says that nothing listens there, or the network refuses.
    Refused { index: usize, error: io::Error },
    /// The address with this index, the first that refuses nothing, is silent.
    Silence { index: usize },
}

/// Asks all addresses of a host, at least one, in all forms.
pub(super) fn probe(probes: &mut [PathProbe], interrupt: &Interrupt) -> Heard {
    let clock = Clock::start();
    let mut refusals: Vec<Option<io::Error>> = probes.iter().map(|_| None).collect();
    for wait in WAITS {
        for (probe, refusal) in probes.iter().zip(&mut refusals).filter(|(_, refusal)| refusal.is_none()) {
            *refusal = send_all(probe).err();
        }
        let end = clock.now() + wait;
        while clock.now() < end && !interrupt.is_stopping() && refusals.iter().any(Option::is_none) {
            for (index, (probe, refusal)) in probes.iter_mut().zip(&mut refusals).enumerate() {
                if refusal.is_some() {
                    continue;
                }
                match probe.receive(LOOK) {
                    Ok(Some(answer)) => return answered(probe, index, answer),
                    Ok(None) => {}
                    Err(error) => *refusal = Some(error),
                }
            }
        }
    }
    match refusals.iter().position(Option::is_none) {
        Some(index) => Heard::Silence { index },
        None => {
            let first = refusals.into_iter().flatten().next();
            first.map_or(Heard::Silence { index: 0 }, |error| Heard::Refused { index: 0, error })
        }
    }
}

/// Asks in all forms. Some are too large for a narrow interface, which is no refusal.
fn send_all(probe: &PathProbe) -> io::Result<()> {
    for form in [Form::Secure, Form::Plain, Form::Udt] {
        match probe.send(form, 0) {
            Err(error) if error.raw_os_error() != Some(libc::EMSGSIZE) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Waits for answers to the other forms. A plain port is asked again, since a loss would make it another kind of port.
fn answered(probe: &mut PathProbe, index: usize, first: Answer) -> Heard {
    let mut forms = BTreeSet::from([first.form]);
    let mut round_trip = first.round_trip;
    let mut wait = OTHERS.max(first.round_trip / 4);
    for _ in 0..REPEATS {
        while !is_known(&forms)
            && let Ok(Some(answer)) = probe.receive(wait)
        {
            round_trip = round_trip.min(answer.round_trip);
            forms.insert(answer.form);
        }
        if is_known(&forms) {
            break;
        }
        wait = OTHERS.max(first.round_trip * 3 / 2);
        for form in [Form::Plain, Form::Udt] {
            // The port has answered, so an error here is no news.
            let _ = probe.send(form, 0);
        }
    }
    Heard::Answer { index, forms, round_trip }
}

/// Whether further answers tell nothing more about the kind of the port.
fn is_known(forms: &BTreeSet<Form>) -> bool {
    forms.contains(&Form::Secure) || forms.len() > 1
}

/// A port that answers.
pub(super) fn judge_answer(peer: SocketAddr, forms: &BTreeSet<Form>) -> Finding {
    let (words, security) = if forms.contains(&Form::Secure) {
        ("encrypted", "tls1.3")
    } else if forms.contains(&Form::Plain) && forms.contains(&Form::Udt) {
        ("plain, not encrypted: both sides need --plain", "none")
    } else if forms.contains(&Form::Plain) {
        ("plain, not encrypted, and not with UDT4: both sides need --plain and the same --protocol", "none")
    } else {
        ("plain, not encrypted, without measured streams: `farhaul pipe --plain`, or another program of UDT4", "none")
    };
    Finding::ok("udp", format!("{peer} answers: {words}")).with("security", security)
}

/// A host that says that nothing listens on this port, or a network that refuses. With the fault of the program.
pub(super) fn judge_refusal(peer: SocketAddr, error: &io::Error) -> (Finding, Fault) {
    let port = peer.port();
    let finding = match error.kind() {
        io::ErrorKind::ConnectionRefused => Finding::problem(
            "udp",
            format!("{} says that nothing listens on UDP port {port}, or its firewall rejects it", peer.ip()),
        )
        .fix_there(format!("farhaul bench --listen :{port}")),
        io::ErrorKind::PermissionDenied => Finding::problem(
            "udp",
            format!("this machine may not send to {peer}: its firewall forbids it"),
        )
        .fix(format!("sudo ufw allow out {port}/udp\nsudo nft insert rule inet filter output udp dport {port} accept")),
        _ => Finding::problem("udp", format!("the network does not deliver to {peer}: {error}"))
            .fix(format!("ip route get {}", peer.ip())),
    };
    finding.and_fault(Code::ConnectTimeout)
}

/// Nobody answers by UDP. `answers`: those by TCP. With the fault of the program.
pub(super) fn judge_silence(peer: SocketAddr, answers: Answers) -> (Finding, Fault) {
    let port = peer.port();
    let words = |answer| match answer {
        tcp::Answer::Open => "open",
        tcp::Answer::Refused => "closed",
        tcp::Answer::Silent => "silent",
    };
    if answers.is_up() {
        let message = format!(
            "no answer from {peer} by UDP, while its host answers by TCP (port {port} {}, port 22 {}): UDP is blocked, or no \
             Farhaul listens there",
            words(answers.same),
            words(answers.ssh)
        );
        return Finding::problem("udp", message).fix_there(firewall::opening(port)).and_fault(Code::UdpBlocked);
    }
    let message = format!(
        "no answer from {peer} by UDP, nor by TCP (ports {port} and 22): its host is down, the address is wrong, or a firewall \
         drops everything"
    );
    Finding::problem("udp", message).fix_there(firewall::opening(port)).and_fault(Code::ConnectTimeout)
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingState;
    use super::*;

    fn peer() -> SocketAddr {
        "192.0.2.7:9000".parse().unwrap()
    }

    #[test]
    fn the_kind_of_a_port_is_known_by_the_forms_that_it_answers() {
        let words = |forms: &[Form]| judge_answer(peer(), &forms.iter().copied().collect()).message;
        assert!(words(&[Form::Secure]).ends_with("answers: encrypted"));
        assert!(words(&[Form::Plain, Form::Udt]).ends_with("both sides need --plain"));
        assert!(words(&[Form::Plain]).contains("the same --protocol"));
        assert!(words(&[Form::Udt]).contains("UDT4"));
    }

    #[test]
    fn a_port_is_known_by_encryption_or_by_two_forms() {
        let known = |forms: &[Form]| is_known(&forms.iter().copied().collect());
        assert!(known(&[Form::Secure]) && known(&[Form::Plain, Form::Udt]));
        assert!(!known(&[Form::Plain]) && !known(&[Form::Udt]));
    }

    #[test]
    fn silence_with_an_answer_by_tcp_is_a_blocked_udp_and_names_the_firewalls() {
        for (same, ssh) in [(tcp::Answer::Refused, tcp::Answer::Silent), (tcp::Answer::Silent, tcp::Answer::Open)] {
            let (finding, fault) = judge_silence(peer(), Answers { same, ssh });
            let fix = finding.fix.unwrap();
            for command in ["ufw allow 9000/udp", "firewall-cmd --add-port=9000/udp", "udp dport 9000 accept"] {
                assert!(fix.contains(command), "{fix}");
            }
            assert_eq!((finding.state, fault.code, fault.code.exit()), (FindingState::Problem, Code::UdpBlocked, 4));
        }
    }

    #[test]
    fn silence_of_both_blames_neither() {
        let (finding, fault) = judge_silence(peer(), Answers { same: tcp::Answer::Silent, ssh: tcp::Answer::Silent });
        assert!(finding.message.contains("is down") && fault.code == Code::ConnectTimeout, "{}", finding.message);
    }

    #[test]
    fn a_closed_port_and_a_forbidden_one_are_told_apart() {
        let (closed, fault) = judge_refusal(peer(), &io::ErrorKind::ConnectionRefused.into());
        assert!(closed.message.contains("nothing listens") && fault.code.exit() == 4);
        assert_eq!(closed.fix.as_deref(), Some("farhaul bench --listen :9000"));
        let (forbidden, _) = judge_refusal(peer(), &io::ErrorKind::PermissionDenied.into());
        assert!(forbidden.message.contains("forbids") && forbidden.fix.unwrap().contains("output"));
        let (other, _) = judge_refusal(peer(), &io::ErrorKind::HostUnreachable.into());
        assert_eq!(other.fix.as_deref(), Some("ip route get 192.0.2.7"));
    }
}
