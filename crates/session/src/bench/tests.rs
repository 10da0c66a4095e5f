use proptest::prelude::*;

use super::filler::BODY;
use super::*;
use crate::field::Fields;
use crate::frame_kind::MAX_DATA;
use crate::handshake::Acceptor;
use crate::request::measurement::Stop;

/// Time of one round of the pipes.
const TICK: Duration = Duration::from_millis(1);

fn figures(packets: u64) -> Figures {
    let (limit, limit_share) = (Some(5), Some(900_000));
    let rtt_min = Some(Duration::from_micros(7));
    Figures { packets_sent: Some(packets), rtt_min, limit, limit_share, ..Figures::default() }
}

/// Runs a measurement over pipes that move at most `step` bytes per millisecond and direction.
fn measure(spec: BenchSpec, step: usize) -> [(Figures, Figures); 2] {
    let mut client = Bench::connect(spec);
    let mut opening = client.poll_write(Instant::ZERO).to_vec();
    client.handle_written(Instant::ZERO, opening.len());
    let (used, open) = Acceptor::new().handle_received(&opening).unwrap();
    assert_eq!(open.unwrap().request, Request::Bench(spec));
    opening.drain(..used);
    assert!(opening.is_empty());
    let mut ends = [(client, None), (Bench::accept(spec), None)];
    let mut asked = 0;
    for round in 1..100_000 {
        let now = Instant::from_nanos(round * 1_000_000);
        for side in 0..2 {
            let pending = ends[side].0.poll_write(now);
            let moved = pending[..pending.len().min(step)].to_vec();
            ends[side].0.handle_written(now, moved.len());
            ends[1 - side].0.handle_received(now, &moved).unwrap();
            for (bench, done) in &mut ends {
                while let Some(event) = bench.poll_event() {
                    match event {
                        BenchEvent::FiguresWanted => {
                            asked += 1;
                            bench.handle_figures(figures(asked));
                        }
                        BenchEvent::Done { sender, receiver } => *done = Some((sender, receiver)),
                        BenchEvent::Accepted => {}
                    }
                }
            }
        }
        if let [(_, Some(a)), (_, Some(b))] = &ends {
            return [*a, *b];
        }
    }
    panic!("stuck");
}

#[test]
fn both_sides_learn_both_figures_in_both_directions() {
    for direction in [Direction::Forward, Direction::Reverse] {
        let [client, server] = measure(BenchSpec { direction, stop: Stop::Bytes(5_000_000) }, 100_000);
        assert_eq!(client, server);
        let (sender, receiver) = client;
        assert_eq!((sender.bytes, receiver.bytes), (5_000_000, 5_000_000));
        let packets = (sender.packets_sent, receiver.packets_sent);
        assert_eq!(packets, (Some(3), Some(2)), "the sender's figures are those of after the receiver's");
        assert_eq!(receiver.elapsed, TICK * 52, "4 frames of 11 rounds and one of 9, first to last");
        assert_eq!(receiver.rtt_min, Some(Duration::from_micros(7)));
        assert_eq!(receiver.rtt_mean, None);
        assert_eq!(
            (sender.limit, sender.limit_share),
            (Some(5), Some(900_000)),
            "the receiver learns what held the sender"
        );
    }
}

#[test]
fn time_ends_a_measurement_at_the_end_of_a_frame() {
    let spec = BenchSpec { direction: Direction::Forward, stop: Stop::After(Duration::from_millis(500)) };
    let [(sender, receiver), _] = measure(spec, 1 << 20);
    assert!((300 * BODY as u64..=500 * BODY as u64).contains(&sender.bytes), "most frames are full: {sender:?}");
    assert_eq!(receiver.bytes, sender.bytes);
}

#[test]
fn a_slow_path_holds_up_the_end_of_a_measurement_by_a_tenth_at_most() {
    let spec = BenchSpec { direction: Direction::Forward, stop: Stop::After(Duration::from_millis(500)) };
    let [(sender, receiver), _] = measure(spec, 100);
    assert_eq!(receiver.bytes, sender.bytes);
    assert!((490..=550).contains(&receiver.elapsed.as_millis()), "{receiver:?}");
}

/// A transport with a large buffer, from which `rate(millisecond)` bytes leave in each millisecond.
fn last_byte_leaves_after(time: Duration, buffer: u64, rate: impl Fn(u64) -> u64) -> (u64, u64) {
    let spec = BenchSpec { direction: Direction::Reverse, stop: Stop::After(time) };
    let mut bench = Bench::accept(spec);
    let (mut written, mut left) = (0, 0);
    for millisecond in 0..100_000 {
        let now = Instant::from_nanos(millisecond * 1_000_000);
        bench.handle_left(now, left);
        loop {
            let pending = bench.poll_write(now).len() as u64;
            let taken = pending.min(buffer - (written - left));
            if taken == 0 {
                break;
            }
            bench.handle_written(now, taken as usize);
            written += taken;
        }
        left = written.min(left + rate(millisecond));
        if bench.poll_event() == Some(BenchEvent::FiguresWanted) {
            return (millisecond + (written - left) / rate(millisecond), left);
        }
    }
    panic!("it never ends");
}

#[test]
fn a_large_buffer_of_the_transport_does_not_prolong_a_measurement() {
    let time = Duration::from_secs(8);
    // 80 Mbit/s and half a minute of data.
    let (ended, _) = last_byte_leaves_after(time, 512 << 20, |_| 10_000);
    assert!((8_000..8_200).contains(&ended), "{ended} ms");
    // A blast protocol that waits for an RTT of 200 ms after each second. The pauses to come are estimated from earlier
    // ones, to a tenth of the time.
    let (ended, left) =
        last_byte_leaves_after(time, 512 << 20, |at| if at % 1_200 < 1_000 { 100_000 } else { 0 }.max(1));
    assert!((8_000..8_800).contains(&ended), "{ended} ms");
    assert!(left > 650_000_000, "it sent all the time: {left} bytes");
}

#[test]
fn a_rate_that_grows_is_never_without_data() {
    // It grows from 8 kbit/s to 800 Mbit/s in two seconds, twofold in each 117 ms.
    let rate = |at: u64| (1 << (at / 117).min(17)).min(100_000);
    let (ended, left) = last_byte_leaves_after(Duration::from_secs(4), 512 << 20, rate);
    let possible: u64 = (0..4_000).map(rate).sum();
    assert!(left as f64 > 0.99 * possible as f64, "{left} of {possible} bytes");
    assert!((4_000..4_200).contains(&ended), "{ended} ms");
}

#[test]
fn a_measurement_without_data_reports_zero() {
    let [(sender, receiver), _] = measure(BenchSpec { direction: Direction::Reverse, stop: Stop::Bytes(0) }, 50);
    assert_eq!((sender.bytes, receiver.bytes, receiver.elapsed), (0, 0, Duration::ZERO));
}

#[test]
fn full_frames_are_sent_from_the_same_memory() {
    let mut bench = Bench::accept(BenchSpec { direction: Direction::Reverse, stop: Stop::Bytes(u64::MAX) });
    let answer = bench.poll_write(Instant::ZERO).len();
    bench.handle_written(Instant::ZERO, answer);
    let first = bench.poll_write(Instant::ZERO);
    let (address, length) = (first.as_ptr(), first.len());
    assert_eq!(length, MAX_DATA);
    bench.handle_written(Instant::ZERO, length);
    assert_eq!(bench.poll_write(Instant::ZERO).as_ptr(), address);
}

#[test]
fn a_stop_in_the_middle_of_a_frame_still_reaches_the_peer() {
    let spec = BenchSpec { direction: Direction::Reverse, stop: Stop::Bytes(u64::MAX) };
    let mut server = Bench::accept(spec);
    let mut client = Bench::connect(spec);
    client.handle_written(Instant::ZERO, client.state.out.pending().len());
    let mut error = None;
    for round in 0..10 {
        let bytes = server.poll_write(Instant::ZERO);
        let bytes = bytes[..bytes.len().min(700_000)].to_vec();
        server.handle_written(Instant::ZERO, bytes.len());
        error = error.or(client.handle_received(Instant::ZERO, &bytes).err());
        if round == 1 {
            server.cancel(Abort { code: crate::AbortCode::Cancelled, message: String::new() });
        }
    }
    assert!(matches!(error, Some(SessionError::PeerAborted(_))), "{error:?}");
}

#[test]
fn figures_that_disagree_with_the_bytes_are_refused() {
    let mut server = Bench::accept(BenchSpec { direction: Direction::Forward, stop: Stop::Bytes(9) });
    let mut early_end = Vec::new();
    let lie = Figures { bytes: 9, ..Figures::default() };
    crate::framing::put_frame(&mut early_end, FrameKind::End, |out| lie.encode(out));
    assert_eq!(server.handle_received(Instant::ZERO, &early_end), Err(Violation::Counts.into()));
    assert_eq!(server.handle_end(), Ok(()), "over already");
}

proptest! {
    #[test]
    fn any_fragmentation_counts_alike(step in 1usize..5000, bytes in 0u64..20_000, reverse in any::<bool>()) {
        let direction = if reverse { Direction::Reverse } else { Direction::Forward };
        let [(sender, receiver), _] = measure(BenchSpec { direction, stop: Stop::Bytes(bytes) }, step);
        prop_assert_eq!((sender.bytes, receiver.bytes), (bytes, bytes));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), reverse in any::<bool>()) {
        let direction = if reverse { Direction::Reverse } else { Direction::Forward };
        let mut bench = Bench::accept(BenchSpec { direction, stop: Stop::Bytes(10) });
        let _ = bench.handle_received(Instant::ZERO, &bytes);
        bench.poll_write(Instant::ZERO);
    }

    #[test]
    fn figures_of_other_versions_are_decoded(count in 2u8..20, values in proptest::collection::vec(any::<u64>(), 20)) {
        let mut body = vec![count];
        for value in &values[..usize::from(count)] {
            body.extend_from_slice(&(value >> 1).to_be_bytes());
        }
        let figures = Figures::decode(&mut Fields::new(&body)).unwrap();
        prop_assert_eq!(figures.bytes, values[0] >> 1);
        prop_assert_eq!(figures.cpu_user.is_some(), count > 2);
    }
}
