//! Each direction of a stream ends by itself.

use super::content;
use super::pair::Pair;
use crate::error::ConnectionLost;
use crate::transport::StreamError;
use crate::{ConnectionId, Event, Read, Streams};

/// Reads until there is nothing for now. Returns the bytes, and what the last read said.
fn read(pair: &mut Pair, end: usize, id: ConnectionId) -> (Vec<u8>, Result<Read, StreamError>) {
    let (mut got, mut buffer) = (Vec::new(), vec![0; 10_000]);
    loop {
        match pair.ends[end].read(pair.now, id, &mut buffer) {
            Ok(Read::Data(length)) => got.extend_from_slice(&buffer[..length]),
            last => return (got, last),
        }
    }
}

/// Reads to the end of the peer's direction, and returns its bytes.
fn read_to_end(pair: &mut Pair, end: usize, id: ConnectionId) -> Vec<u8> {
    let mut all = Vec::new();
    pair.run_until(20, |pair| {
        let (got, last) = read(pair, end, id);
        all.extend(got);
        last == Ok(Read::End)
    });
    all
}

fn write_all(pair: &mut Pair, end: usize, id: ConnectionId, data: &[u8]) {
    let mut written = 0;
    pair.run_until(20, |pair| {
        written += pair.ends[end].write(pair.now, id, &data[written..]).unwrap();
        written == data.len()
    });
}

fn finish_sending(pair: &mut Pair, end: usize, id: ConnectionId) {
    pair.ends[end].finish_sending(pair.now, id).unwrap();
}

/// How the connection of an end is over.
fn closed(pair: &Pair, end: usize) -> Option<ConnectionLost> {
    pair.events[end].iter().find_map(|event| if let Event::Closed(_, reason) = event { Some(*reason) } else { None })
}

#[test]
fn an_answer_follows_a_question_whose_direction_has_ended() {
    let mut pair = Pair::new();
    let [client, server] = pair.connect();
    assert!([0, 1].iter().all(|&end| pair.ends[end].has_half_close([client, server][end])));
    write_all(&mut pair, 0, client, b"a question");
    finish_sending(&mut pair, 0, client);
    finish_sending(&mut pair, 0, client);
    assert_eq!(pair.ends[0].write(pair.now, client, b"more"), Err(StreamError::Finished));
    assert_eq!(read_to_end(&mut pair, 1, server), b"a question");
    pair.run_until(5, |pair| pair.events[0].contains(&Event::SendingFinished(client)));
    let answer = content(1_000_000);
    let (mut written, mut got) = (0, Vec::new());
    pair.run_until(20, |pair| {
        written += pair.ends[1].write(pair.now, server, &answer[written..]).unwrap();
        got.extend(read(pair, 0, client).0);
        got.len() == answer.len()
    });
    assert!(got == answer);
    assert_eq!(pair.ends[0].read(pair.now, client, &mut [0]), Ok(Read::Pending));
    assert!(!pair.events[0].contains(&Event::Finished(client)), "the other direction goes on");
    finish_sending(&mut pair, 1, server);
    assert_eq!(read_to_end(&mut pair, 0, client), b"");
    pair.run_until(5, |pair| pair.events[0].contains(&Event::Finished(client)));
    pair.run_until(5, |pair| pair.events[1].contains(&Event::Finished(server)) || closed(pair, 1).is_some());
    assert!(matches!(closed(&pair, 1), None | Some(ConnectionLost::ClosedByPeer)));
    assert_eq!(read(&mut pair, 1, server).1, Ok(Read::End), "it stays the end");
}

#[test]
fn a_reader_that_waits_is_woken_by_the_end_of_an_empty_direction() {
    let mut pair = Pair::new();
    let [client, server] = pair.connect();
    assert_eq!(pair.ends[1].read(pair.now, server, &mut [0]), Ok(Read::Pending));
    finish_sending(&mut pair, 0, client);
    pair.run_until(5, |pair| pair.events[1].contains(&Event::Readable(server)));
    assert_eq!(pair.ends[1].read(pair.now, server, &mut [0]), Ok(Read::End));
    finish_sending(&mut pair, 1, server);
    pair.run_until(5, |pair| pair.events[0].contains(&Event::Finished(client)));
    assert_eq!(pair.ends[0].read(pair.now, client, &mut [0]), Ok(Read::End), "two empty directions");
}

#[test]
fn plain_connections_have_no_half_close() {
    let mut plain = crate::udt::endpoint(crate::Config::default(), super::Entropy { cookie_key: [1; 16], seed: 1 });
    let now = farhaul_units::Instant::from_nanos(1);
    let id = plain.connect(now, super::address(1)).unwrap();
    assert!(!plain.has_half_close(id));
    assert_eq!(plain.finish_sending(now, id), Err(StreamError::NotConnected));
}

/// Its own direction has ended well, so the peer hears no abort. Only what the peer has yet to send is lost.
#[test]
fn a_half_closed_connection_that_is_released_closes() {
    for unsent in [0, 3_000_000] {
        let mut pair = Pair::new();
        let [client, server] = pair.connect();
        write_all(&mut pair, 0, client, b"everything");
        finish_sending(&mut pair, 0, client);
        pair.run_until(5, |pair| pair.events[0].contains(&Event::SendingFinished(client)));
        let data = content(unsent);
        pair.ends[1].write(pair.now, server, &data).unwrap();
        pair.ends[0].release(pair.now, client);
        pair.run_until(10, |pair| closed(pair, 1).is_some());
        let expected = if unsent == 0 { ConnectionLost::ClosedByPeer } else { ConnectionLost::Aborted };
        assert_eq!(closed(&pair, 1), Some(expected));
        assert_eq!(read(&mut pair, 1, server), (b"everything".to_vec(), Ok(Read::End)));
        assert_eq!(pair.ends[1].finish_sending(pair.now, server), Err(StreamError::Lost(expected)));
    }
}

#[test]
fn an_abort_leaves_a_direction_complete_that_had_ended() {
    let mut pair = Pair::new();
    let [client, server] = pair.connect();
    write_all(&mut pair, 0, client, b"everything");
    finish_sending(&mut pair, 0, client);
    pair.run_until(5, |pair| pair.events[0].contains(&Event::SendingFinished(client)));
    pair.ends[0].abort(pair.now, client);
    pair.run_until(5, |pair| closed(pair, 1).is_some());
    assert_eq!(closed(&pair, 1), Some(ConnectionLost::Aborted));
    assert_eq!(read(&mut pair, 1, server), (b"everything".to_vec(), Ok(Read::End)));
}

#[test]
fn an_abort_before_the_end_of_a_direction_is_no_end() {
    let mut pair = Pair::new();
    let [client, server] = pair.connect();
    write_all(&mut pair, 0, client, b"a part");
    finish_sending(&mut pair, 1, server);
    pair.run_until(5, |pair| pair.events[1].contains(&Event::SendingFinished(server)));
    pair.ends[0].abort(pair.now, client);
    pair.run_until(5, |pair| closed(pair, 1).is_some());
    let (got, last) = read(&mut pair, 1, server);
    assert_eq!((got.as_slice(), last), (&b"a part"[..], Err(StreamError::Lost(ConnectionLost::Aborted))));
}

#[test]
fn a_peer_that_closes_both_directions_ends_a_half_closed_connection() {
    let mut pair = Pair::new();
    let [client, server] = pair.connect();
    finish_sending(&mut pair, 0, client);
    write_all(&mut pair, 1, server, b"an answer");
    pair.ends[1].finish(pair.now, server);
    assert_eq!(read_to_end(&mut pair, 0, client), b"an answer");
    pair.run_until(5, |pair| closed(pair, 0).is_some());
    assert_eq!(closed(&pair, 0), Some(ConnectionLost::ClosedByPeer));
}

/// The last acknowledgement cannot be confirmed, so nobody may wait for that without limit.
#[test]
fn a_side_whose_directions_have_both_ended_does_not_wait_for_a_peer_that_is_gone() {
    let mut pair = Pair::new();
    let [client, server] = pair.connect();
    finish_sending(&mut pair, 0, client);
    pair.run_until(5, |pair| pair.events[0].contains(&Event::SendingFinished(client)));
    pair.ends[1].finish_sending(pair.now, server).unwrap();
    // The end of the server's direction arrives, and nothing else.
    let mut arrives = 1;
    pair.fate = Box::new(move |end, _| if end == 1 { std::mem::take(&mut arrives) } else { 0 });
    let began = pair.now;
    pair.run_until(5, |pair| pair.events[0].contains(&Event::Finished(client)));
    let waited = pair.now - began;
    assert!((200..2_000).contains(&waited.as_millis()), "{waited:?}");
}
