//! Floods of callers, and paths that damage handshakes.

use core::net::SocketAddr;

use farhaul_netem::{LossSpec, PathSpec};
use farhaul_proto::{Config, Event, Streams, Transport};
use farhaul_sim::Workload;
use farhaul_sim::topology::path::{CALLER, LISTENER};
use farhaul_units::{Duration, Instant};

use crate::attack_secure::bench::{endpoint, finish, null, pair_of, path, undisturbed, upload};
use crate::attack_secure::server::{Server, call, caller, sent, with_token};

/// 20 forged Initial packets in every millisecond, each from another address.
#[test]
fn a6_forged_callers_fill_no_memory_and_leave_a_transfer_its_goodput() {
    let mut forger = endpoint(3, Config::default(), null(3));
    let now = Instant::from_nanos(1);
    let mut calls = Vec::new();
    for _ in 0..2_000 {
        forger.connect(now, ([10, 0, 0, 2], 9_000).into()).unwrap();
        calls.extend(sent(&mut forger, now).into_iter().map(|(_, datagram)| datagram));
    }
    let (best, _) = undisturbed();
    let mut run = upload();
    let (mut call, mut most) = (0_u32, 0);
    let complete = |run: &crate::attack_secure::bench::Run| {
        run.flows(LISTENER).first().is_some_and(|flow| flow.received().complete_at.is_some())
    };
    while !complete(&run) {
        run.run_for(Duration::from_millis(1));
        assert!(run.now() < Instant::ZERO + best * 2, "it does not arrive");
        for _ in 0..20 {
            let [a, b, c, _] = call.to_le_bytes();
            let from = SocketAddr::from(([20 + c, b, a, 1], 4_000));
            run.inject(LISTENER, from, &calls[call as usize % calls.len()]);
            call += 1;
        }
        most = most.max(run.transport(LISTENER).connections());
    }
    assert!(most <= 1 + 256, "{most} connections, after {call} calls");
    let (time, _) = finish(&mut run);
    assert!(time.mul_f64(0.8) <= best, "{time:?} in place of {best:?}");
}

#[test]
fn a10_of_fifty_handshakes_over_loss_and_damage_of_thirty_percent_49_succeed() {
    let bad = PathSpec { loss: Some(LossSpec::Bernoulli(0.15)), corrupt: 0.18, ..path() };
    let mut connected = 0;
    for seed in 0..50 {
        let [caller, listener] = [1, 2].map(|end| {
            let config = Config { connect_timeout: Duration::from_secs(10), ..Config::default() };
            endpoint(end + 2 * seed, config, null(end + 2 * seed))
        });
        let pair = pair_of(caller, listener).path(bad.clone()).seed(seed.into());
        let mut run = pair.caller(Workload::default()).listener(Workload::default()).start();
        run.deliver_damaged(true);
        let is_connected = |run: &crate::attack_secure::bench::Run| {
            let events = run.application(CALLER).log();
            let called = events.iter().any(|(_, event)| matches!(event, Event::Connected(_)));
            called && !run.flows(LISTENER).is_empty()
        };
        connected += u32::from(run.run_until_true(Instant::ZERO + Duration::from_secs(10), is_connected));
    }
    assert!(connected >= 49, "{connected} of 50");
}

#[test]
fn a6_a_listener_that_is_full_of_forged_callers_still_takes_one_that_is_there() {
    let mut server = crate::attack_secure::server::Server::flooded();
    let (mut client, first) = crate::attack_secure::server::call(9);
    let (now, to) = (server.now, SocketAddr::from(([10, 0, 0, 2], 9_000)));
    let mut waiting = first;
    for _ in 0..6 {
        let answers: Vec<_> = waiting
            .iter()
            .flat_map(|datagram| server.deliver(crate::attack_secure::server::caller(400), datagram))
            .collect();
        for (_, mut answer) in answers {
            let stride = answer.len();
            client.handle_datagrams(now, now, to, &mut answer, stride);
        }
        waiting = sent(&mut client, now).into_iter().map(|(_, datagram)| datagram).collect();
    }
    assert!(server.events.iter().any(|event| matches!(event, Event::Accepted(_))), "{:?}", server.events);
}

/// A host without a key that is at its address: it shows its tokens, and never goes on.
fn prove(server: &mut Server, host: [u8; 4], ports: std::ops::Range<u16>) {
    for port in ports {
        let from = SocketAddr::from((host, port));
        // As fast as callers without a proof are answered: each has two packets.
        server.now += Duration::from_micros(200);
        for datagram in with_token(server, from, port as u8) {
            server.deliver(from, &datagram);
        }
    }
}

/// Has a client call, however often it must. Returns whether the server took it.
fn gets_in(server: &mut Server, from: SocketAddr) -> bool {
    let (mut client, mut waiting) = call(9);
    server.now += Duration::from_millis(1);
    let (to, now) = (SocketAddr::from(([10, 0, 0, 2], 9_000)), server.now);
    let before = server.events.len();
    for _ in 0..6 {
        let answers: Vec<_> = waiting.iter().flat_map(|datagram| server.deliver(from, datagram)).collect();
        for (_, mut answer) in answers.into_iter().filter(|(to, _)| *to == from) {
            let stride = answer.len();
            client.handle_datagrams(now, now, to, &mut answer, stride);
        }
        waiting = sent(&mut client, now).into_iter().map(|(_, datagram)| datagram).collect();
    }
    server.events[before..].iter().any(|event| matches!(event, Event::Accepted(_)))
}

#[test]
fn a6_a_host_with_a_proof_of_its_address_fills_a_quarter_of_the_places_and_keeps_nobody_out() {
    let mut server = Server::flooded();
    let forged = server.end.connections();
    prove(&mut server, [12, 0, 0, 1], 1_000..2_000);
    assert_eq!(server.end.connections(), forged + 256);
    assert!(gets_in(&mut server, caller(400)), "another network");
    assert!(!gets_in(&mut server, SocketAddr::from(([12, 0, 0, 1], 4_000))), "its own callers have their time");
    assert!(gets_in(&mut server, SocketAddr::from(([12, 0, 0, 2], 4_000))), "a neighbour of it");
    prove(&mut server, [12, 0, 0, 1], 3_000..3_001);
    server.run_millis(1_000);
    assert!(gets_in(&mut server, SocketAddr::from(([12, 0, 0, 1], 4_000))), "and make room after it");
}

#[test]
fn a6_whoever_fills_all_places_makes_room_for_a_network_that_has_less() {
    let mut server = Server::flooded();
    for network in 1..=4 {
        prove(&mut server, [12, 0, network, 1], 1_000..1_300);
    }
    assert_eq!(server.end.connections(), 1_024);
    for n in 400..420 {
        assert!(gets_in(&mut server, caller(n)), "{n}");
    }
    assert!(server.end.connections() <= 1_024, "those that got in have places of the others");
}

#[test]
fn a6_without_the_start_of_a_client_hello_there_is_no_state() {
    let (_, first) = call(9);
    assert_eq!(first.len(), 2, "a ClientHello in two packets");
    let mut server = Server::new();
    assert!(server.deliver(caller(1), &first[1]).is_empty());
    assert_eq!(server.end.connections(), 0);
    for datagram in &first {
        server.deliver(caller(1), datagram);
    }
    assert_eq!(server.end.connections(), 1);
}
