//! The findings about the path to a host: name, route, UDP, key, round trip, packet size.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use farhaul::path::{Form, PathMtu, PathProbe};
use farhaul::{Error, Rate};
use farhaul_transfer::internal::connect::is_here;
use farhaul_transfer::internal::report::micros;
use farhaul_units::ByteSize;

use super::examined::Examined;
use super::finding::Finding;
use super::handshake;
use super::interface::{ETHERNET, Interface, JUMBO};
use super::reach::{self, Heard};
use super::target::Target;
use super::tcp;
use crate::exit::{Code, Fault};
use crate::output::human::time;

/// Time for the packet size.
const SIZING: Duration = Duration::from_millis(1_500);
/// Questions for the round trip, and the longest time for one.
const QUESTIONS: usize = 5;
const PATIENCE: Duration = Duration::from_millis(200);
/// A fast path, for the data in flight.
const GIGABIT: Rate = Rate::from_megabits_per_second(1_000);

/// Examines the path to `target`. Returns the fault of a host that cannot be reached by UDP.
pub(super) fn examine(
    target: &Target,
    examined: &Examined<'_>,
    mut report: impl FnMut(Finding),
) -> Result<Option<Fault>, Fault> {
    let addresses = match target.resolve() {
        Ok(addresses) => addresses,
        Err(fault) => {
            let fix = format!("getent ahosts {}", target.host());
            report(Finding::problem("name", fault.message.clone()).fix(fix));
            return Ok(Some(fault));
        }
    };
    if target.is_name() {
        report(judge_name(target, &addresses));
    }
    let mut probes = match open(&target.to_string(), addresses) {
        Ok(probes) => probes,
        Err(failed) => {
            let (finding, fault) = *failed;
            report(finding);
            return Ok(Some(fault));
        }
    };
    if target.has_port {
        return Ok(examine_udp(target, examined, &mut probes, report));
    }
    report(route(&probes[0]));
    let (finding, fault) = judge_host_alone(target, tcp::connect(probes[0].peer()));
    report(finding);
    Ok(fault)
}

/// The addresses to which this machine has a route, at least one.
pub(super) fn open(target: &str, addresses: Vec<SocketAddr>) -> Result<Vec<PathProbe>, Box<(Finding, Fault)>> {
    let (mut probes, mut failed) = (Vec::new(), None);
    for address in addresses {
        match PathProbe::towards(address) {
            Ok(probe) => probes.push(probe),
            Err(Error::Unreachable { source, .. }) => failed = failed.or(Some((address, source.to_string()))),
            Err(error) => failed = failed.or(Some((address, error.to_string()))),
        }
    }
    if probes.is_empty() { Err(Box::new(judge_no_route(target, failed))) } else { Ok(probes) }
}

/// Asks the host by UDP, and examines what answers.
fn examine_udp(
    target: &Target,
    examined: &Examined<'_>,
    probes: &mut [PathProbe],
    mut report: impl FnMut(Finding),
) -> Option<Fault> {
    let interrupt = &examined.context.interrupt;
    let (finding, fault) = match reach::probe(probes, interrupt) {
        _ if interrupt.is_stopping() => return None,
        Heard::Answer { index, forms, round_trip } => {
            let probe = &mut probes[index];
            report(route(probe));
            report(reach::judge_answer(probe.peer(), &forms));
            if forms.contains(&Form::Secure) {
                let server = handshake::Server { name: &target.name(), peer: probe.peer(), round_trip };
                handshake::examine(&server, examined).into_iter().for_each(&mut report);
            }
            measure(probe, &forms, round_trip, examined.packet).into_iter().for_each(report);
            return None;
        }
        Heard::Refused { index, error } => {
            report(route(&probes[index]));
            reach::judge_refusal(probes[index].peer(), &error)
        }
        Heard::Silence { index } => {
            report(route(&probes[index]));
            let peer = probes[index].peer();
            reach::judge_silence(peer, tcp::connect_to_both(peer))
        }
    };
    report(finding);
    Some(fault)
}

/// The addresses of a host.
pub(super) fn judge_name(target: &Target, addresses: &[SocketAddr]) -> Finding {
    let unique: BTreeSet<String> = addresses.iter().map(|address| address.ip().to_string()).collect();
    let [four, six] = [true, false].map(|ipv4| addresses.iter().filter(|address| address.is_ipv4() == ipv4).count());
    let unique: Vec<String> = unique.into_iter().collect();
    Finding::ok("name", format!("{} is {}", target.host(), unique.join(" and ")))
        .with("ipv4_addresses", four)
        .with("ipv6_addresses", six)
}

/// `failed`: the first address, and the reason.
pub(super) fn judge_no_route(target: &str, failed: Option<(SocketAddr, String)>) -> (Finding, Fault) {
    let (address, why) = failed
        .map_or((target.to_owned(), "it has no address".to_owned()), |(address, why)| (address.ip().to_string(), why));
    let message = format!("this machine has no route to {address}: {why}");
    Finding::problem("route", message).fix(format!("ip route get {address}")).and_fault(Code::NoRoute)
}

/// The interface through which packets leave.
pub(super) fn route(probe: &PathProbe) -> Finding {
    let peer = probe.peer();
    let near = probe.local_addr().map_or_else(|_| "an unknown address".to_owned(), |near| near.ip().to_string());
    let interface = interface_towards(peer);
    let words = interface.as_ref().map_or_else(|| "an unknown interface".to_owned(), Interface::words);
    Finding::ok("route", format!("from {near} to {} through {words}", peer.ip()))
        .with("mtu_bytes", interface.and_then(|interface| interface.mtu))
}

fn interface_towards(peer: SocketAddr) -> Option<Interface> {
    let name = if is_here(peer) { Some("lo".to_owned()) } else { farhaul_udp::interface_name(peer.ip()) };
    name.map(|name| Interface::named(&name))
}

/// A host without a port can be asked by TCP alone. With the fault of the program for one that is silent.
pub(super) fn judge_host_alone(target: &Target, ssh: tcp::Answer) -> (Finding, Option<Fault>) {
    let next = format!("name the port of a running `farhaul serve` or `bench`: `farhaul doctor {target}:PORT`");
    match ssh {
        tcp::Answer::Open => {
            let message = format!(
                "its SSH port (TCP 22) answers; to test UDP as copies over SSH use it, put a colon behind the host, or {next}"
            );
            (Finding::advice("udp", message).fix(format!("farhaul doctor {target}:")), None)
        }
        tcp::Answer::Refused => {
            let message =
                format!("its host answers, and nothing listens on the SSH port (TCP 22); to test UDP, {next}");
            (Finding::advice("udp", message), None)
        }
        tcp::Answer::Silent => {
            let message = format!(
                "no answer from {target} on the SSH port (TCP 22): its host is down, the address is wrong, or a firewall drops \
                 everything there; to ask by UDP, {next}"
            );
            let finding = Finding::problem("udp", message).fix(format!("ping -c 3 {}", target.host()));
            let (finding, fault) = finding.and_fault(Code::ConnectTimeout);
            (finding, Some(fault))
        }
    }
}

/// Round trip and packet size of a path that answers. `first`: a round trip. `packet`: the size of this user's packets.
pub(super) fn measure(probe: &mut PathProbe, forms: &BTreeSet<Form>, first: Duration, packet: u32) -> Vec<Finding> {
    let sizing = [Form::Secure, Form::Plain].into_iter().find(|form| forms.contains(form));
    let form = sizing.unwrap_or(Form::Udt);
    let mut shortest = first;
    for _ in 0..QUESTIONS {
        if probe.send(form, 0).is_err() {
            break;
        }
        match probe.receive(PATIENCE) {
            Ok(Some(answer)) => shortest = shortest.min(answer.round_trip),
            _ => break,
        }
    }
    let mut found = vec![judge_round_trip(shortest)];
    let limit =
        interface_towards(probe.peer()).and_then(|interface| interface.mtu).or(probe.system_mtu()).unwrap_or(ETHERNET);
    if let Some(form) = sizing
        && let Ok(Some(mtu)) = probe.find_mtu(form, limit.min(JUMBO), shortest, SIZING)
    {
        found.push(judge_path_mtu(mtu, limit, packet));
    }
    found
}

/// The time for a question and its answer.
pub(super) fn judge_round_trip(shortest: Duration) -> Finding {
    let flight = ByteSize(GIGABIT.bytes_in(shortest));
    Finding::ok("round_trip", format!("{}; {flight} are on the way at 1 Gbit/s", time(shortest)))
        .with("round_trip_us", micros(shortest))
}

/// `limit`: the largest packet of the interface. `packet`: the size of this user's packets. In bytes.
pub(super) fn judge_path_mtu(mtu: PathMtu, limit: u32, packet: u32) -> Finding {
    let PathMtu { passes, fails } = mtu;
    let words = format!("packets of up to {passes} bytes pass whole");
    let finding = match fails {
        _ if passes < packet => Finding::advice(
            "path_mtu",
            format!("{words}, and Farhaul's packets of {packet} bytes are fragmented, which many firewalls drop"),
        )
        .fix(format!("export FARHAUL_MTU={passes}")),
        _ if passes >= JUMBO => Finding::ok(
            "path_mtu",
            format!("packets of {JUMBO} bytes pass whole; --mtu {JUMBO} at both sides takes less processor time"),
        ),
        Some(_) if limit > passes => Finding::ok(
            "path_mtu",
            format!("{words}, although the interface permits {limit}: keep --mtu at {passes} or less"),
        ),
        _ => Finding::ok("path_mtu", words),
    };
    finding.with("mtu_bytes", passes).with("fails_bytes", fails)
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingState;
    use super::*;

    fn target(text: &str) -> Target {
        text.parse().unwrap()
    }

    #[test]
    fn a_name_has_all_its_addresses_once() {
        let addresses = ["192.0.2.7:9", "192.0.2.7:9", "[2001:db8::7]:9"].map(|address| address.parse().unwrap());
        let finding = judge_name(&target("far:9"), &addresses);
        assert_eq!(finding.message, "far is 192.0.2.7 and 2001:db8::7");
        assert_eq!(finding.record()["ipv6_addresses"], 1);
    }

    #[test]
    fn a_narrow_path_needs_smaller_packets() {
        let narrow = judge_path_mtu(PathMtu { passes: 1_420, fails: Some(1_421) }, 1_500, ETHERNET);
        assert_eq!((narrow.state, narrow.fix.as_deref()), (FindingState::Advice, Some("export FARHAUL_MTU=1420")));
        let usual = judge_path_mtu(PathMtu { passes: 1_500, fails: None }, 1_500, ETHERNET);
        assert_eq!((usual.state, usual.message.as_str()), (FindingState::Ok, "packets of up to 1500 bytes pass whole"));
        let hole = judge_path_mtu(PathMtu { passes: 1_500, fails: Some(1_501) }, 9_000, ETHERNET);
        assert!(hole.state == FindingState::Ok && hole.message.contains("although the interface permits 9000"));
        assert!(
            judge_path_mtu(PathMtu { passes: 9_000, fails: None }, 65_536, ETHERNET).message.contains("--mtu 9000")
        );
    }

    #[test]
    fn a_round_trip_says_what_a_gigabit_has_in_flight() {
        let finding = judge_round_trip(Duration::from_millis(100));
        assert_eq!(finding.message, "100 ms; 12.5 MB are on the way at 1 Gbit/s");
        assert_eq!(finding.record()["round_trip_us"], 100_000);
    }

    #[test]
    fn a_host_without_a_port_or_a_route_says_what_to_type_next() {
        let (alone, fault) = judge_host_alone(&target("far"), tcp::Answer::Open);
        assert_eq!((alone.state, alone.fix.as_deref()), (FindingState::Advice, Some("farhaul doctor far:")));
        assert_eq!(fault, None);
        let (closed, fault) = judge_host_alone(&target("far"), tcp::Answer::Refused);
        assert_eq!((closed.state, closed.fix, fault), (FindingState::Advice, None, None));
        assert!(closed.message.contains("farhaul doctor far:PORT"), "{}", closed.message);
        let (dead, fault) = judge_host_alone(&target("far"), tcp::Answer::Silent);
        assert!(dead.state == FindingState::Problem && dead.message.contains("is down"), "{}", dead.message);
        assert_eq!(fault.map(|fault| fault.code), Some(Code::ConnectTimeout));
        let (finding, fault) = judge_no_route("far:9", Some(("192.0.2.7:9".parse().unwrap(), "none".into())));
        assert_eq!((finding.fix.as_deref(), fault.code), (Some("ip route get 192.0.2.7"), Code::NoRoute));
    }
}
