use core::net::SocketAddr;

use super::*;

const PROBE: Duration = Duration::from_millis(120);

fn address(host: u8, port: u16) -> AddressPair {
    SocketAddr::from(([10, 0, 0, host], port)).into()
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn paths() -> Paths {
    Paths::new(address(1, 9_000), [7; 16])
}

/// The challenge that is due.
fn challenge(paths: &mut Paths, now: Instant) -> Option<(AddressPair, Challenge)> {
    match paths.poll(now)? {
        (to, Message::Challenge(challenge)) => Some((to, challenge)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_peer_moves_by_its_response_from_the_new_address_alone() {
    let (mut paths, new) = (paths(), address(1, 9_001));
    paths.question(new, 100, at(0), PROBE);
    let (to, asked) = challenge(&mut paths, at(0)).unwrap();
    assert_eq!((to, paths.present()), (new, address(1, 9_000)));
    assert!(!paths.on_response(new, [0; 8], at(20), PROBE), "another response");
    assert!(!paths.on_response(address(1, 9_002), asked, at(20), PROBE), "another address");
    assert!(paths.on_response(new, asked, at(20), PROBE));
    assert_eq!(paths.present(), new);
    assert!(!paths.on_response(new, asked, at(20), PROBE), "once");
}

#[test]
fn a_peer_that_answers_at_its_old_address_takes_its_connection_back() {
    let (mut paths, old, new) = (paths(), address(1, 9_000), address(6, 666));
    paths.question(new, 100, at(0), PROBE);
    let (_, asked) = challenge(&mut paths, at(0)).unwrap();
    assert!(paths.on_response(new, asked, at(20), PROBE));
    let (to, asked) = challenge(&mut paths, at(20)).unwrap();
    assert_eq!(to, old);
    paths.on_newest_from_peer();
    assert!(paths.on_response(old, asked, at(40), PROBE), "the forwarder's packets do not end the question");
    assert_eq!(paths.present(), old);
}

#[test]
fn an_old_address_is_forgotten_after_three_probe_times() {
    let (mut paths, old, new) = (paths(), address(1, 9_000), address(1, 9_001));
    paths.question(new, 100, at(0), PROBE);
    let (_, asked) = challenge(&mut paths, at(0)).unwrap();
    assert!(paths.on_response(new, asked, at(0), PROBE));
    let (_, asked) = challenge(&mut paths, at(0)).unwrap();
    paths.handle_timeout(at(359));
    assert!(paths.find(old).is_some());
    paths.handle_timeout(at(360));
    assert!(!paths.on_response(old, asked, at(360), PROBE));
}

#[test]
fn no_more_than_three_times_what_came_goes_to_an_unvalidated_address() {
    let (mut paths, new) = (paths(), address(6, 666));
    paths.question(new, CHALLENGE_DATAGRAM, at(0), PROBE);
    let mut sent = 0;
    for millis in 0..3_000 {
        while challenge(&mut paths, at(millis)).is_some() {
            sent += 1;
        }
    }
    assert_eq!(sent, 3, "at 0, 120 and 360 ms");
    paths.on_challenge(new, [1; 8]);
    assert_eq!(paths.poll(at(2_999)), None, "responses count too");
    assert_eq!(paths.deadline(), Some(at(3_000)), "nothing else is due");
    paths.handle_timeout(at(3_000));
    assert_eq!(paths.deadline(), None);
}

#[test]
fn a_lost_challenge_is_repeated_at_growing_intervals() {
    let mut paths = paths();
    paths.question(address(1, 9_001), 10_000, at(0), PROBE);
    let asked: Vec<u64> = (0..3_000).filter(|millis| challenge(&mut paths, at(*millis)).is_some()).collect();
    assert_eq!(asked, [0, 120, 360, 840, 1_800]);
}

#[test]
fn the_newest_packet_from_the_peer_ends_the_question() {
    let (mut paths, new) = (paths(), address(6, 666));
    paths.question(new, 100, at(0), PROBE);
    let (_, asked) = challenge(&mut paths, at(0)).unwrap();
    paths.on_newest_from_peer();
    assert!(!paths.on_response(new, asked, at(20), PROBE));
    assert_eq!(paths.deadline(), None);
}

#[test]
fn forged_addresses_replace_each_other_and_never_the_old_one() {
    let (mut paths, new) = (paths(), address(1, 9_001));
    paths.question(new, 100, at(0), PROBE);
    let (_, asked) = challenge(&mut paths, at(0)).unwrap();
    assert!(paths.on_response(new, asked, at(0), PROBE));
    for port in 1..1_000 {
        paths.question(address(6, port), 100, at(1), PROBE);
        paths.on_challenge(address(6, port), [3; 8]);
    }
    assert_eq!((paths.candidates.len(), paths.owed.len()), (MOST, MOST));
    assert!(paths.find(address(1, 9_000)).is_some());
}
