//! A blast connection with the simplest engine that repairs losses: the behaviour of every blast protocol's connections.

mod engine;
pub(crate) mod hostile;
pub(crate) mod pair;
pub(crate) mod testing;
mod walk;
mod walks;

use farhaul_units::Duration;
use farhaul_wire::blast::{Frame, Hello, TAG_LEN, Tag};

use self::engine::Simple;
use self::pair::Pair;
use self::testing::content;
use super::engine::Protocol;
use crate::fobs::{self, Fobs};
use crate::hurricane::{self, Hurricane};
use crate::rbudp::{self, Rbudp};
use crate::sabul::{self, Sabul};
use crate::tsunami::{self, Tsunami};
use farhaul_proto::channel::{ChannelEnd, ChannelOutput, Channels};
use farhaul_proto::config::{Config, MinProgress, Mode};
use farhaul_proto::error::{ConnectionLost, PeerIncompatible};
use farhaul_proto::event::Event;
use farhaul_proto::transport::{Read, StreamError, Streams, Transport};

fn pair() -> Pair {
    Pair::new(Config::default(), Config::default())
}

#[test]
fn a_small_write_travels_on_the_channel_and_bulk_by_datagrams() {
    let mut pair = pair();
    let (near, far) = pair.connect();
    pair.write(0, near, b"hello");
    assert_eq!(pair.read_until(1, far, 5), b"hello");
    assert_eq!(pair.data_datagrams, [0, 0], "a dialogue needs no blast");
    let bulk = content(3_000_000);
    pair.write(0, near, &bulk);
    assert!(pair.read_until(1, far, bulk.len()) == bulk);
    assert!(pair.data_datagrams[0] >= 2_000);
    pair.write(1, far, b"well received");
    assert_eq!(pair.read_until(0, near, 13), b"well received");
}

#[test]
fn bulk_and_small_writes_stay_in_order_both_ways_in_spite_of_loss() {
    let mut pair = pair();
    pair.loss = 0.02;
    let (near, far) = pair.connect();
    let mut sent = [Vec::new(), Vec::new()];
    for round in 0..20 {
        for (side, id) in [(0, near), (1, far)] {
            for bytes in [content(7), content(100_000 + round), content(16 << 10), content(1)] {
                pair.write(side, id, &bytes);
                sent[side].extend_from_slice(&bytes);
            }
        }
        pair.run_for(Duration::from_millis(3));
    }
    assert!(pair.read_until(1, far, sent[0].len()) == sent[0]);
    assert!(pair.read_until(0, near, sent[1].len()) == sent[1]);
}

#[test]
fn a_finished_stream_is_read_to_its_end_and_leaves_nothing() {
    let mut pair = pair();
    let (near, far) = pair.connect();
    let bulk = content(500_000);
    pair.write(0, near, &bulk);
    pair.finish(0, near);
    assert!(pair.read_until(1, far, bulk.len()) == bulk);
    pair.run_for(Duration::from_secs(1));
    assert!(pair.events[0].contains(&Event::Finished(near)));
    assert_eq!(pair.read(1, far, 1), Ok(Read::End));
    pair.release(0, near);
    pair.release(1, far);
    pair.run_for(Duration::from_secs(3));
    assert_eq!(pair.connections(), [0, 0]);
    assert_eq!(pair.channels(), [0, 0], "the hosts have forgotten the channels");
}

#[test]
fn an_abort_is_never_the_end_of_a_stream() {
    for close in [false, true] {
        let mut pair = pair();
        let (near, far) = pair.connect();
        pair.write(0, near, &content(2_000_000));
        pair.run_for(Duration::from_millis(20));
        // Not everything written is delivered, so a close is an abort as well.
        if close {
            pair.close(0, near)
        } else {
            pair.abort(0, near)
        }
        pair.run_for(Duration::from_secs(1));
        let lost = StreamError::Lost(ConnectionLost::Aborted);
        while pair.read(1, far, 1 << 16).is_ok_and(|read| matches!(read, Read::Data(_))) {}
        assert_eq!(pair.read(1, far, 1), Err(lost));
    }
}

#[test]
fn a_reader_that_pauses_holds_the_sender_back_without_loss() {
    let receiver = Config { recv_buffer: 1 << 20, ..Config::default() };
    let mut pair = Pair::new(Config::default(), receiver);
    let (near, far) = pair.connect();
    let bulk = content(4 << 20);
    let mut written = 0;
    for _ in 0..2_000 {
        written += pair.write_some(0, near, &bulk[written..]);
        pair.run_for(Duration::from_millis(1));
    }
    assert_eq!(written, 1 << 20, "as much as the credit permits");
    assert_eq!((pair.data_lost, pair.refused), (0, 0));
    let mut received = Vec::new();
    while received.len() < bulk.len() {
        received.extend(pair.read_until(1, far, (bulk.len() - received.len()).min(1 << 18)));
        written += pair.write_some(0, near, &bulk[written..]);
        pair.run_for(Duration::from_millis(50));
        written += pair.write_some(0, near, &bulk[written..]);
    }
    assert!(received == bulk);
}

#[test]
fn blocked_udp_is_named_after_three_seconds_at_both_ends() {
    for blocked in [[true, true], [true, false], [false, true]] {
        let mut pair = pair();
        pair.blocked = blocked;
        let near = pair.call();
        pair.run_for(Duration::from_millis(3_500));
        let reason = ConnectionLost::UdpBlocked(Duration::from_secs(3));
        let named = |event: &Event| matches!(event, Event::Closed(_, lost) if *lost == reason);
        assert!(pair.events[0].contains(&Event::Closed(near, reason)), "{blocked:?}: {:?}", pair.events[0]);
        assert!(pair.events[1].iter().any(named), "{blocked:?}: {:?}", pair.events[1]);
    }
}

#[test]
fn nobody_there_is_a_refusal_and_silence_a_time_out() {
    let mut pair = pair();
    pair.refuses = true;
    let near = pair.call();
    pair.run_for(Duration::from_secs(1));
    assert!(pair.events[0].contains(&Event::Closed(near, ConnectionLost::ChannelRefused)));
    let mut pair = self::pair();
    pair.silent = true;
    let near = pair.call();
    pair.run_for(Duration::from_secs(6));
    let reason = ConnectionLost::ConnectTimeout(Duration::from_secs(5));
    assert!(pair.events[0].contains(&Event::Closed(near, reason)), "{:?}", pair.events[0]);
}

#[test]
fn a_program_that_is_no_peer_is_named() {
    let mut hello = Vec::new();
    Hello { protocol: "another", tag: Tag(1), datagram: 1_472, options: &[] }.encode(&mut hello);
    let other = PeerIncompatible::OtherProtocol;
    for (bytes, fault) in [
        (&b"SSH-2.0-OpenSSH\r\n"[..], PeerIncompatible::NoFarhaul),
        (b"FARHAUL\x07", PeerIncompatible::ChannelVersion(7)),
        (&hello, other),
    ] {
        let mut pair = pair();
        pair.silent = true;
        let near = pair.call();
        pair.run_for(Duration::from_millis(50));
        pair.inject(0, near, bytes);
        let reason = ConnectionLost::PeerIncompatible(fault);
        assert!(pair.events[0].contains(&Event::Closed(near, reason)), "{:?}", pair.events[0]);
    }
}

#[test]
fn a_peer_that_breaks_the_rules_of_the_channel_is_cut_off() {
    let frames: [(&str, Vec<Frame<'_>>); 5] = [
        ("credit", vec![Frame::Bulk(1 << 40)]),
        ("delivered", vec![Frame::Delivered(1)]),
        ("after the end", vec![Frame::End, Frame::Inline(b"x")]),
        ("record", vec![Frame::Forward(b"none sends this")]),
        ("backward", vec![Frame::Backward(&[9; 40])]),
    ];
    for (what, frames) in frames {
        let mut pair = pair();
        let (near, _) = pair.connect();
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.encode(&mut bytes));
        pair.inject(0, near, &bytes);
        let over = pair.events[0].iter().any(|event| matches!(event, Event::Closed(id, _) if *id == near));
        assert!(over, "{what}: {:?}", pair.events[0]);
    }
}

#[test]
fn a_channel_that_breaks_or_ends_early_is_never_an_end() {
    for (end, reason) in
        [(ChannelEnd::Failed, ConnectionLost::ChannelBroken), (ChannelEnd::Finished, ConnectionLost::Aborted)]
    {
        let mut pair = pair();
        let (near, _) = pair.connect();
        pair.cut(0, near, end);
        assert!(pair.events[0].contains(&Event::Closed(near, reason)), "{:?}", pair.events[0]);
        assert_eq!(pair.read(0, near, 1), Err(StreamError::Lost(reason)));
    }
}

/// A datagram of the peer that no sender of the protocol sends.
fn invalid_after_one<P: Protocol>(options: P::Options) -> u64 {
    let mut pair = Pair::<P>::of(options, Config::default(), Config::default());
    let (_, far) = pair.connect();
    let tag = pair.last_datagram_to(1)[..TAG_LEN].to_vec();
    let from = Pair::<P>::address_of(0);
    pair.deliver(1, from, &[&tag[..], &[1; 3]].concat());
    let now = pair.now;
    pair.ends[1].stats(now, far).unwrap().totals.packets_invalid
}

#[test]
fn a_refused_datagram_counts_once_in_every_protocol() {
    let counts = [
        invalid_after_one::<Rbudp>(rbudp::Options::default()),
        invalid_after_one::<Tsunami>(tsunami::Options::default()),
        invalid_after_one::<Sabul>(sabul::Options::default()),
        invalid_after_one::<Fobs>(fobs::Options::default()),
        invalid_after_one::<Hurricane>(hurricane::Options::default()),
    ];
    assert_eq!(counts, [1; 5]);
}

#[test]
fn c2_datagrams_of_strangers_change_nothing() {
    let mut pair = pair();
    let (near, far) = pair.connect();
    let strangers = [core::net::SocketAddr::from(([9, 9, 9, 9], 9_000))];
    let datagram = pair.last_datagram_to(1);
    for from in strangers {
        pair.deliver(1, from, &datagram);
        pair.deliver(1, from, &[0; 40]);
        pair.deliver(1, from, &[1; 3]);
    }
    assert_eq!(pair.ends[1].invalid_datagrams(), 3);
    pair.write(0, near, &content(100_000));
    assert!(pair.read_until(1, far, 100_000) == content(100_000));
}

#[test]
fn c2_a_sender_stops_three_seconds_after_the_channel_fell_silent() {
    let mut pair = pair();
    let (near, _) = pair.connect();
    let bulk = content(8 << 20);
    pair.write_some(0, near, &bulk);
    pair.silent = true;
    pair.run_for(Duration::from_secs(5));
    let before = pair.data_datagrams[0];
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.data_datagrams[0], before);
    pair.run_for(Duration::from_secs(20));
    let reason = ConnectionLost::PeerSilent(Duration::from_secs(30));
    assert!(pair.events[0].contains(&Event::Closed(near, reason)), "{:?}", pair.events[0]);
}

#[test]
fn b10_a_peer_that_never_reads_is_given_up_if_the_application_waits() {
    let floor = MinProgress { bytes: 10_000, time: Duration::from_secs(10) };
    for waits in [true, false] {
        let sender = Config { min_progress: Some(floor), ..Config::default() };
        let mut pair = Pair::new(sender, Config { recv_buffer: 1 << 17, ..Config::default() });
        let (near, _) = pair.connect();
        let written = pair.write_some(0, near, &content(1 << 17));
        assert_eq!(written, 1 << 17, "all that the credit permits");
        if waits {
            assert_eq!(pair.write_some(0, near, b"more"), 0);
        }
        pair.run_for(Duration::from_secs(25));
        assert_eq!(pair.ends[0].stats(pair.now, near).map(|stats| stats.totals.bytes_acked), Some(1 << 17));
        let slow = ConnectionLost::TooSlow { bytes: 0, time: floor.time };
        assert_eq!(pair.events[0].contains(&Event::Closed(near, slow)), waits, "{:?}", pair.events[0]);
    }
}

#[test]
fn callers_beyond_the_limits_are_refused_without_a_connection() {
    let mut end = super::endpoint::<Simple>(
        Config { max_connections: 3, ..Config::default() },
        (),
        farhaul_proto::Entropy { cookie_key: [1; 16], seed: 1 },
    );
    let now = farhaul_units::Instant::from_nanos(1);
    let from = |port| core::net::SocketAddr::from(([10, 0, 0, 1], port));
    assert_eq!(end.accept_channel(now, from(1)), None, "nobody listens");
    end.listen(Mode::Stream).unwrap();
    assert!((1..=3).all(|port| end.accept_channel(now, from(port)).is_some()));
    assert_eq!(end.accept_channel(now, from(4)), None);
    assert!(end.poll_transmit(now, &mut farhaul_proto::transport::Batch::new()).is_none());
    // A caller that never sends its hello is forgotten, and the host is told.
    end.handle_timeout(now + Duration::from_secs(6));
    let later = now + Duration::from_secs(6);
    let mut resets = 0;
    loop {
        while let Some(output) = end.poll_channel(later) {
            resets += u32::from(matches!(output, ChannelOutput::Reset(_)));
        }
        let mut batch = farhaul_proto::transport::Batch::new();
        assert!(end.poll_transmit(later, &mut batch).is_none());
        if end.poll_timeout() != Some(farhaul_units::Instant::ZERO) {
            break;
        }
    }
    assert_eq!((resets, end.poll_event()), (3, None));
    assert!(end.accept_channel(later, from(5)).is_some());
}

/// Small and large writes both ways over a lossy path.
fn keeps_the_order<P: Protocol>(options: P::Options) {
    let mut pair = Pair::<P>::of(options, Config::default(), Config::default());
    pair.loss = 0.01;
    let (near, far) = pair.connect();
    let mut sent = [Vec::new(), Vec::new()];
    for round in 0..30 {
        for (side, id) in [(0, near), (1, far)] {
            for bytes in [content(7), content(65_541), content(200_000 + round), content(16 << 10), content(1)] {
                pair.write(side, id, &bytes);
                sent[side].extend_from_slice(&bytes);
            }
        }
        pair.run_for(Duration::from_millis(3));
    }
    assert!(pair.read_until(1, far, sent[0].len()) == sent[0], "{}", P::NAME);
    assert!(pair.read_until(0, near, sent[1].len()) == sent[1], "{}", P::NAME);
}

#[test]
fn every_protocol_keeps_the_order_of_small_and_large_writes() {
    keeps_the_order::<crate::rbudp::Rbudp>(Default::default());
    keeps_the_order::<crate::tsunami::Tsunami>(Default::default());
    keeps_the_order::<crate::sabul::Sabul>(Default::default());
    keeps_the_order::<crate::fobs::Fobs>(Default::default());
    keeps_the_order::<crate::hurricane::Hurricane>(Default::default());
}
