//! A mux at each end of a pair of sockets.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use farhaul::{ConnectionLost, Error, Rate};
use farhaul_units::Instant;

use super::frame::Frame;
use super::state::{MuxState, Over};
use super::{Gone, Mux, MuxStream, WINDOW, opening};

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(30);

struct End {
    mux: Mux,
    stream: MuxStream,
    heard: Receiver<Vec<u8>>,
}

impl End {
    fn on(socket: UnixStream, silence: Duration) -> Self {
        let (say, heard) = channel();
        let hear = move |message: &[u8]| say.send(message.to_vec()).map_err(|_| Gone);
        let mux = Mux::begin((socket.try_clone().unwrap(), Vec::new()), (socket, 0), hear, || {}).unwrap();
        let stream = mux.stream(silence);
        Self { mux, stream, heard }
    }

    fn pair() -> (Self, Self) {
        let (one, two) = UnixStream::pair().unwrap();
        (Self::on(one, LONG), Self::on(two, LONG))
    }
}

fn send_all(stream: &MuxStream, mut data: &[u8]) -> Result<(), Error> {
    while !data.is_empty() {
        data = &data[stream.send(data)?..];
    }
    Ok(())
}

fn read_to_end(stream: &MuxStream) -> Result<Vec<u8>, Error> {
    let (mut all, mut block) = (Vec::new(), vec![0; 100_000]);
    loop {
        match stream.recv(&mut block)? {
            0 => return Ok(all),
            len => all.extend_from_slice(&block[..len]),
        }
    }
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index % 251) as u8).collect()
}

#[test]
fn each_direction_arrives_whole_and_ends_alone() {
    let (here, there) = End::pair();
    // Several windows, and one byte.
    let (long, short) = (bytes(3 * WINDOW as usize), b"x");
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(read_to_end(&there.stream).unwrap().len(), long.len());
            send_all(&there.stream, short).unwrap();
            there.stream.finish().unwrap();
        });
        send_all(&here.stream, &long).unwrap();
        here.stream.finish_sending().unwrap();
        assert!(matches!(here.stream.send(b"more"), Err(Error::Finished)));
        assert_eq!(read_to_end(&here.stream).unwrap(), short);
        here.stream.wait_until_closed().unwrap();
    });
    let stats = here.stream.stats();
    assert_eq!((stats.totals.bytes_acked, stats.totals.bytes_read), (long.len() as u64, 1));
    assert!(here.stream.ending().is_some() && there.stream.ending().is_some());
}

#[test]
fn an_opening_is_the_begin_of_a_stream() {
    let (near, far) = UnixStream::pair().unwrap();
    // It waits in the pipe of a program that begins later.
    (&near).write_all(&opening(b"first ")).unwrap();
    let near_end = Mux::begin((near.try_clone().unwrap(), Vec::new()), (near, 6), |_| Ok(()), || {}).unwrap();
    let (here, there) = (near_end.stream(LONG), End::on(far, LONG));
    send_all(&here, b"and more").unwrap();
    here.finish_sending().unwrap();
    assert_eq!(read_to_end(&there.stream).unwrap(), b"first and more");
    there.stream.finish().unwrap();
    here.wait_until_closed().unwrap();
    assert_eq!(here.stats().totals.bytes_acked, 14);
}

#[test]
fn messages_overtake_a_stream_that_nobody_reads() {
    let (here, there) = End::pair();
    here.stream.set_write_timeout(Some(Duration::from_millis(200)));
    let all = bytes(2 * WINDOW as usize);
    let mut sent = 0;
    let stopped = loop {
        match here.stream.send(&all[sent..]) {
            Ok(len) => sent += len,
            Err(error) => break error,
        }
    };
    assert!(matches!(stopped, Error::TimedOut(_)), "{stopped}");
    assert_eq!(sent as u64, WINDOW, "no more than the peer has room for");
    here.mux.say(b"stop").unwrap();
    assert_eq!(there.heard.recv_timeout(LONG).unwrap(), b"stop");
    // And what waits is not lost.
    here.stream.close();
    assert_eq!(read_to_end(&there.stream).unwrap(), all[..sent]);
}

#[test]
fn a_stream_that_is_left_arrives_and_one_that_is_given_up_says_so() {
    let (here, there) = End::pair();
    send_all(&here.stream, b"last words").unwrap();
    here.stream.close();
    assert_eq!(read_to_end(&there.stream).unwrap(), b"last words");
    here.stream.wait_until_closed().unwrap();
    there.stream.wait_until_closed().unwrap();

    let hows: [fn(&MuxStream); 2] = [MuxStream::abort, |_| {}];
    for how in hows {
        let (here, there) = End::pair();
        send_all(&here.stream, b"some").unwrap();
        let End { stream, mux: _mux, .. } = here;
        how(&stream);
        drop(stream);
        let ended = read_to_end(&there.stream);
        assert!(matches!(ended, Err(Error::Lost(ConnectionLost::Aborted))), "{ended:?}");
        assert!(there.stream.send(b"answer").is_err());
    }
}

#[test]
fn a_peer_that_is_silent_is_lost_and_one_that_has_nothing_to_say_is_not() {
    let (socket, mut silent) = UnixStream::pair().unwrap();
    let here = End::on(socket, Duration::from_millis(1_500));
    send_all(&here.stream, b"hello?").unwrap();
    let lost = here.stream.recv(&mut [0]);
    assert!(matches!(lost, Err(Error::Lost(ConnectionLost::PeerSilent(_)))), "{lost:?}");
    let mut said = [0; 10];
    silent.read_exact(&mut said).unwrap();
    assert_eq!(Frame::first_of(&said), Ok(Some((Frame::Data(b"hello?"), 10))));

    let (one, two) = UnixStream::pair().unwrap();
    let [here, there] = [one, two].map(|socket| End::on(socket, Duration::from_millis(2_500)));
    send_all(&here.stream, b"hello?").unwrap();
    there.stream.recv(&mut [0; 6]).unwrap();
    here.stream.set_read_timeout(Some(Duration::from_millis(4_000)));
    let waited = here.stream.recv(&mut [0]);
    assert!(matches!(waited, Err(Error::TimedOut(_))), "{waited:?}");
}

#[test]
fn the_end_of_the_pipe_is_no_end_of_the_stream() {
    let (socket, mut other) = UnixStream::pair().unwrap();
    let here = End::on(socket, LONG);
    let mut said = Vec::new();
    Frame::Data(b"half").put(&mut said);
    other.write_all(&said).unwrap();
    drop(other);
    let ended = read_to_end(&here.stream);
    assert!(matches!(ended, Err(Error::Lost(ConnectionLost::Aborted))), "{ended:?}");
    assert!(here.stream.finish().is_err());
}

#[test]
fn a_peer_that_sends_more_than_it_may_or_counts_what_was_not_sent_misbehaves() {
    let data = vec![7; 128 << 10];
    let mut too_much = Vec::new();
    for _ in 0..=WINDOW / (128 << 10) {
        Frame::Data(&data).put(&mut too_much);
    }
    let [mut miscounted, mut ended_twice, mut malformed] = [const { Vec::new() }; 3];
    Frame::Count { received: 1, limit: 0 }.put(&mut miscounted);
    [Frame::End, Frame::End].iter().for_each(|frame| frame.put(&mut ended_twice));
    malformed.extend_from_slice(b"HTTP/1.1 400 Bad Request\r\n");
    for said in [too_much, miscounted, ended_twice, malformed] {
        let (socket, mut other) = UnixStream::pair().unwrap();
        let here = End::on(socket, LONG);
        // The reader may have hung up.
        let _ = other.write_all(&said);
        let refused = || match here.stream.ending() {
            Some(ConnectionLost::PeerMisbehaved(_)) => true,
            None => false,
            other => panic!("{other:?}"),
        };
        for _ in 0..1_000 {
            if refused() {
                break;
            }
            thread::park_timeout(Duration::from_millis(10));
        }
        assert!(refused());
    }
}

#[test]
fn a_cap_holds_and_a_cancellation_ends_a_wait() {
    let (here, there) = End::pair();
    here.stream.set_max_rate(Some(Rate::from_bits_per_second(20_000_000))).unwrap();
    assert!(here.stream.set_max_rate(Some(Rate::ZERO)).is_err());
    let began = here.stream.stats().elapsed;
    thread::scope(|scope| {
        scope.spawn(|| read_to_end(&there.stream).unwrap());
        send_all(&here.stream, &bytes(2_000_000)).unwrap();
        here.stream.finish().unwrap();
    });
    // 16 Mbit, and 10 ms at most of them at once.
    let took = here.stream.stats().elapsed - began;
    assert!(took >= Duration::from_millis(750), "{took:?}");

    let (here, _there) = End::pair();
    thread::scope(|scope| {
        let waits = scope.spawn(|| here.stream.recv(&mut [0]));
        here.stream.cancel();
        let ended = waits.join().unwrap();
        assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
    });
}

#[test]
fn two_streams_that_are_tied_are_one() {
    let (one, near_one) = UnixStream::pair().unwrap();
    let (two, near_two) = UnixStream::pair().unwrap();
    let [one, two] = [one, two].map(|socket| End::on(socket, LONG));
    let [from, to] = [near_one, near_two].map(|socket| End::on(socket, LONG));
    from.mux.relay_to(&to.mux);
    to.mux.relay_to(&from.mux);
    let all = bytes(WINDOW as usize + 100_000);
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(read_to_end(&two.stream).unwrap(), all);
            two.stream.finish().unwrap();
        });
        one.mux.say(b"for the one between").unwrap();
        send_all(&one.stream, &all).unwrap();
        one.stream.finish().unwrap();
    });
    assert_eq!(from.heard.recv_timeout(LONG).unwrap(), b"for the one between");
    assert!(two.heard.try_recv().is_err());
}

/// Attack: a remote program that only counts, towards another one that reads nothing.
#[test]
fn frames_of_any_kind_that_are_passed_on_have_a_bound() {
    for frame in [Frame::Count { received: 0, limit: 0 }, Frame::End, Frame::Close { in_order: true }] {
        let (mut state, mut bytes) = (MuxState::new(Instant::ZERO), Vec::new());
        frame.put(&mut bytes);
        let passed = (0..1_000_000).take_while(|_| state.has_queue() && (state.pass(&bytes), true).1).count();
        assert!(passed * bytes.len() < 1 << 20, "{frame:?}: {passed} frames");
        // What the writer takes makes room again.
        while state.next_frame().is_some() {
            state.wrote(Instant::ZERO);
        }
        assert!(state.has_queue());
    }
}

#[test]
fn a_peer_that_leaves_in_order_while_an_end_without_bytes_is_underway_has_everything() {
    let [idle, unheard] = [&[][..], b"x"].map(|data| {
        let mut state = MuxState::new(Instant::ZERO);
        state.handle(Frame::Data(b"hello"), Instant::ZERO);
        assert_eq!(state.take(data, Instant::ZERO), data.len());
        state.end();
        state.handle(Frame::Close { in_order: true }, Instant::ZERO);
        state.over()
    });
    assert_eq!(idle, Some(Over::Lost(ConnectionLost::ClosedByPeer)));
    assert_eq!(unheard, Some(Over::Lost(ConnectionLost::Aborted)));
}

#[test]
fn a_message_in_the_hand_of_the_writer_is_not_written_yet() {
    let mut state = MuxState::new(Instant::ZERO);
    assert!(state.is_written());
    state.put(Frame::Message(b"last words")).unwrap();
    assert!(state.next_frame().is_some());
    // A program that ended now would take them along.
    assert!(!state.is_written());
    state.wrote(Instant::ZERO);
    assert!(state.is_written());
    state.put(Frame::Message(b"never")).unwrap();
    assert!(state.next_frame().is_some());
    state.lose_out();
    assert!(state.is_written(), "nobody waits for a pipe that is gone");
}
