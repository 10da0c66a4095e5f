//! Peers with keys: false transport parameters in the handshake, false packets afterwards.

use core::net::SocketAddr;

use farhaul_proto::secure::{Failure, Handshake, Keys, Null, Provider, Side};
use farhaul_proto::{Config, ConnectionLost, Event};
use farhaul_sim::topology::path::{CALLER, LISTENER};
use farhaul_sim::{TapAction, Workload};
use farhaul_units::{Duration, MsgNo, Rate, SeqRange};
use farhaul_wire::secure::{ConnectionName, TransportParameters};
use farhaul_wire::udt4::{Ack, Control, DropRequest, LossList, encode_losses, is_control};

use crate::attack_secure::bench::{
    BYTES, LIMIT, Liar, Run, assert_whole, encode, endpoint, finish, null, pair_of, stats, undisturbed, upload,
};

// ---- false parameters ----

/// A client that claims other transport parameters than its own.
struct Claims {
    null: Null,
    change: fn(&mut TransportParameters<'_>),
}

impl Provider for Claims {
    fn initial(&self, client_id: &[u8], side: Side) -> Keys {
        self.null.initial(client_id, side)
    }

    fn call(&mut self, peer: SocketAddr, parameters: Vec<u8>) -> Result<Box<dyn Handshake>, Failure> {
        let mut claimed = TransportParameters::decode(&parameters).unwrap();
        (self.change)(&mut claimed);
        let mut out = Vec::new();
        claimed.encode(&mut out);
        self.null.call(peer, out)
    }

    fn answer(&mut self, from: SocketAddr, parameters: Vec<u8>) -> Result<Box<dyn Handshake>, Failure> {
        self.null.answer(from, parameters)
    }

    fn meet(&mut self, peer: SocketAddr, parameters: Vec<u8>) -> Result<Box<dyn Handshake>, Failure> {
        self.null.meet(peer, parameters)
    }

    fn seal_token(&self, content: &[u8]) -> Vec<u8> {
        self.null.seal_token(content)
    }

    fn open_token(&self, token: &[u8]) -> Option<Vec<u8>> {
        self.null.open_token(token)
    }
}

fn claiming(change: fn(&mut TransportParameters<'_>), [caller, listener]: [Workload; 2]) -> Run {
    let liar = endpoint(1, Config::default(), Claims { null: null(1), change });
    pair_of(liar, endpoint(2, Config::default(), null(2))).caller(caller).listener(listener).start()
}

#[test]
fn a4_claims_of_huge_and_of_no_windows_cost_no_memory() {
    for change in [
        (|parameters: &mut TransportParameters<'_>| parameters.flow_window = u32::MAX)
            as fn(&mut TransportParameters<'_>),
        |parameters| {
            parameters.flow_window = 0;
        },
    ] {
        let mut run = claiming(change, [Workload::default(); 2]);
        run.run_for(Duration::from_secs(2));
        let memory = stats(&run, LISTENER).memory;
        assert!(memory < 1 << 20, "{memory} bytes for a claim");
        let mut run = claiming(change, [Workload::send(1_000_000), Workload::receive()]);
        assert!(run.run_until_done(LIMIT));
        assert_whole(&run);
    }
}

#[test]
fn a5_claims_of_tiny_packets_are_refused_and_huge_ones_are_clamped() {
    for change in [
        (|parameters: &mut TransportParameters<'_>| parameters.mss = 0) as fn(&mut TransportParameters<'_>),
        |parameters| parameters.mss = 76,
    ] {
        let mut run = claiming(change, [Workload::default(); 2]);
        run.run_for(Duration::from_secs(5));
        assert!(run.flows(LISTENER).is_empty());
        let log = run.application(CALLER).log();
        let refused = |event: &Event| matches!(event, Event::Closed(_, ConnectionLost::PeerIncompatible(_)));
        assert!(log.iter().any(|(_, event)| refused(event)), "{log:?}");
    }
    let mut run = claiming(|parameters| parameters.mss = u32::MAX, [Workload::receive(), Workload::send(1_000_000)]);
    assert!(run.run_until_done(LIMIT));
    assert_whole(&run);
    assert!(stats(&run, LISTENER).payload_size <= 1_500);
}

/// A rate at which a reader takes next to nothing: a byte in 8 s.
const NOTHING: Rate = Rate::from_bits_per_second(1);

// ---- false packets ----

/// An upload in which the packets of `host` are changed by `change`: the packet, and how many came before it.
fn lying(host: usize, mut change: impl FnMut(&mut Vec<u8>, u64) + 'static) -> Run {
    let (mut run, liar, mut count) = (upload(), Liar::at(host), 0);
    run.set_tap(Some(Box::new(move |datagram| {
        liar.rewrite(datagram, |packet| {
            change(packet, count);
            count += 1;
        });
        TapAction::Pass
    })));
    run
}

/// The acknowledgement in a packet.
fn ack(packet: &[u8]) -> Option<Ack> {
    match Control::decode(packet) {
        Ok((_, _, Control::Ack(ack))) => Some(ack),
        _ => None,
    }
}

#[test]
fn b2_b3_a_peer_that_acknowledges_what_was_never_sent_gains_nothing() {
    let (best, _) = undisturbed();
    let mut run = lying(LISTENER, |packet, count| {
        if let Some(ack) = ack(packet).filter(|_| count % 10 == 5) {
            let beyond = Ack::Light { seq: ack.seq().plus(50_000) };
            *packet = encode(ConnectionName::NONE, &Control::Ack(beyond));
        }
    });
    let (time, stats) = finish(&mut run);
    assert!(stats.totals.packets_invalid > 0 && time < best * 2, "{time:?} in place of {best:?}");
}

/// An acknowledgement with 20 packets more, and with claims of a fast path.
fn ahead(ack: Ack) -> Ack {
    let seq = ack.seq().plus(20);
    match ack {
        Ack::Full { number, rtt, rtt_var, .. } => {
            let (free_buffer, arrival_rate, capacity) = (1 << 17, 1 << 20, 1 << 20);
            Ack::Full { number, seq, rtt, rtt_var, free_buffer, arrival_rate, capacity }
        }
        _ => Ack::Light { seq },
    }
}

/// Data packets that a sender with this cap sends in 5 s to a peer that acknowledges what is in flight.
fn sent_to_an_optimist(cap: Option<Rate>) -> u64 {
    let capped = Config { max_rate: cap, ..Config::default() };
    let pair = pair_of(endpoint(1, capped, null(1)), endpoint(2, Config::default(), null(2)));
    let mut run = pair.caller(Workload::send_without_end()).listener(Workload::receive()).start();
    let (liar, mut count) = (Liar::at(LISTENER), 0);
    run.set_tap(Some(Box::new(move |datagram| {
        liar.rewrite(datagram, |packet| {
            // True ones in between, because an acknowledgement of more than was sent is none.
            if let Some(ack) = ack(packet).filter(|_| count % 2 == 1) {
                *packet = encode(ConnectionName::NONE, &Control::Ack(ahead(ack)));
            }
            count += 1;
        });
        TapAction::Pass
    })));
    run.run_for(Duration::from_secs(5));
    let totals = stats(&run, CALLER).totals;
    assert!(totals.acks_received + totals.light_acks_received > totals.packets_invalid + 100, "{totals:?}");
    totals.packets_sent
}

#[test]
fn b8_a_peer_with_keys_that_acknowledges_ahead_gets_no_more_than_its_cap() {
    let cap = Rate::from_megabits_per_second(20);
    let most = (cap.bits_per_second() * 5 / 8 / 1_500) * 102 / 100;
    let (capped, free) = (sent_to_an_optimist(Some(cap)), sent_to_an_optimist(None));
    assert!(capped <= most, "{capped} packets in place of {most}");
    assert!(free > 2 * most, "without a cap only {free} packets");
}

#[test]
fn b5_b6_a_peer_that_reports_everything_lost_gets_one_retransmission_a_round_trip_at_most() {
    let mut run = lying(LISTENER, |packet, count| {
        if let Some(ack) = ack(packet).filter(|_| count % 3 == 1 && count < 300) {
            let all = SeqRange::new(ack.seq().minus(20_000), ack.seq().plus(20_000));
            let mut body = Vec::new();
            encode_losses([all; 50].into_iter(), 300, &mut body);
            *packet = encode(ConnectionName::NONE, &Control::Nak(LossList::from_body(&body).unwrap()));
        }
    });
    let (_, stats) = finish(&mut run);
    let totals = stats.totals;
    assert!(totals.packets_retransmitted < 2 * totals.packets_sent / 3, "{totals:?}");
}

#[test]
fn b7_drop_requests_of_a_peer_over_huge_ranges_cost_nothing_in_a_stream() {
    let mut run = lying(CALLER, |packet, count| {
        if !is_control(packet) && count % 50 == 7 {
            let first = farhaul_units::SeqNo::new(count as u32);
            let request =
                DropRequest { message: MsgNo::new(1), range: SeqRange::new(first, first.plus((1 << 30) - 1)) };
            *packet = encode(ConnectionName::NONE, &Control::DropRequest(request));
        }
    });
    finish(&mut run);
}

#[test]
fn b11_data_of_a_peer_far_ahead_takes_no_memory() {
    let mut run = lying(CALLER, |packet, count| {
        if !is_control(packet) && count % 50 == 7 {
            // The highest bits of the sequence number.
            packet[0] = (packet[0] + 0x20) & 0x7F;
        }
    });
    run.run_for(Duration::from_secs(1));
    let memory = stats(&run, LISTENER).memory;
    assert!(memory < 16 << 20, "{memory} bytes");
    finish(&mut run);
}

#[test]
fn b10_a_peer_that_takes_nothing_is_given_up() {
    let config = Config { stall_timeout: Some(Duration::from_secs(10)), recv_buffer: 1 << 20, ..Config::default() };
    let small = Config { recv_buffer: 1 << 20, ..Config::default() };
    let pair = pair_of(endpoint(1, config, null(1)), endpoint(2, small, null(2)));
    let mut run = pair.caller(Workload::send(BYTES)).listener(Workload::receive().reading_at(NOTHING)).start();
    run.run_for(Duration::from_secs(30));
    let log = run.application(CALLER).log();
    assert!(log.iter().any(|(_, event)| matches!(event, Event::Closed(..))), "{log:?}");
}
