//! The packet size of whole connections: messages across a change, forged packets, and a peer that does not probe.

use std::cell::Cell;
use std::rc::Rc;

use farhaul_wire::udt4::{Control, Fragment, MessageField, Path, Position, SocketId, Timestamp, is_control};

use super::*;

/// Two ends that may probe up to these sizes, on a path that carries datagrams up to the number in the cell.
fn pair(largest: [Option<u32>; 2]) -> (Pair, Rc<Cell<usize>>) {
    let mut pair = Pair::new();
    pair.ends = [0, 1].map(|end| {
        let config = Config { largest_mss: largest[end], ..Config::default() };
        endpoint(config, Entropy { cookie_key: [end as u8; 16], seed: end as u64 })
    });
    let carries = Rc::new(Cell::new(9_000 - 28));
    let limit = Rc::clone(&carries);
    pair.keep = Box::new(move |_, datagram| datagram.len() <= limit.get());
    (pair, carries)
}

fn payload(pair: &Pair, id: ConnectionId) -> u32 {
    pair.ends[0].stats(pair.now, id).unwrap().payload_size
}

#[test]
fn messages_keep_their_boundaries_when_the_size_changes() {
    let (mut pair, carries) = pair([Some(9_000); 2]);
    let [caller, listener] = pair.connect(Mode::Message);
    let (mut sizes, mut out, mut sent) = (Vec::new(), vec![0; 100_000], 0);
    let wanted: Vec<usize> = (0..600).map(|number| number * 97 % 40_000).collect();
    pair.run_until(60, |pair| {
        while sent < wanted.len()
            && pair.ends[0].send_message(pair.now, caller, &content(wanted[sent]), MessageOptions::default())
                == Ok(true)
        {
            sent += 1;
        }
        while let Ok(Message::Received { len, .. }) = pair.ends[1].recv_message(pair.now, listener, &mut out) {
            assert!(out[..len] == content(len));
            sizes.push(len);
        }
        if sizes.len() >= 150 && carries.get() > 1_472 {
            assert_eq!(payload(pair, caller), 9_000 - 44);
            carries.set(1_472);
        }
        sizes.len() == wanted.len()
    });
    sizes.sort_unstable();
    let mut wanted = wanted;
    wanted.sort_unstable();
    assert!(sizes == wanted);
    assert_eq!(payload(&pair, caller), 1_456);
}

#[test]
fn a_stream_with_little_data_changes_its_size_as_well() {
    let (mut pair, carries) = pair([Some(9_000); 2]);
    let [caller, listener] = pair.connect(Mode::Stream);
    for limit in [8_972, 1_472, 1_300, 1_300] {
        carries.set(limit);
        let data = content(300_000);
        assert!(pair.transfer(caller, listener, &data) == data);
    }
    assert!(payload(&pair, caller) + 44 <= 1_300 + 28);
}

#[test]
fn a_side_that_agreed_on_nothing_ignores_packets_of_discovery() {
    for largest in [[None; 2], [Some(9_000), None], [None, Some(9_000)]] {
        let (mut pair, _) = pair(largest);
        let seen = Rc::new(Cell::new(0));
        let count = Rc::clone(&seen);
        pair.keep = Box::new(move |_, datagram| {
            let path = is_control(datagram) && matches!(Control::decode(datagram), Ok((_, _, Control::Path(_))));
            count.set(count.get() + u32::from(path));
            true
        });
        let [caller, listener] = pair.connect(Mode::Stream);
        let data = content(500_000);
        assert!(pair.transfer(caller, listener, &data) == data);
        assert_eq!((seen.get(), payload(&pair, caller)), (0, 1_456));
    }
}

/// Forged packets of discovery, of one who knows the socket id of the listener.
#[test]
fn forged_packets_of_discovery_neither_change_the_size_nor_take_memory() {
    let (mut pair, carries) = pair([Some(9_000); 2]);
    carries.set(1_472);
    let id = Rc::new(Cell::new(SocketId::NONE));
    let seen = Rc::clone(&id);
    pair.keep = Box::new(move |end, datagram| {
        if end == 0 && !is_control(datagram) {
            seen.set(farhaul_wire::udt4::destination(datagram).unwrap());
        }
        datagram.len() <= carries.get()
    });
    let [caller, listener] = pair.connect(Mode::Stream);
    let data = content(100_000);
    assert!(pair.transfer(caller, listener, &data) == data);
    let before = pair.ends[1].stats(pair.now, listener).unwrap().memory;
    let deliver = |pair: &mut Pair, path: Path<'_>| {
        let mut datagram = Vec::new();
        Control::Path(path).encode(Timestamp::ZERO, id.get(), &mut datagram);
        let length = datagram.len();
        pair.ends[1].handle_datagrams(pair.now, pair.now, address(0), &mut datagram, length);
    };
    let sent = pair.sent;
    for number in 0..3_000 {
        deliver(&mut pair, Path::Reply { number, arrived: 9_000 });
        deliver(&mut pair, Path::Probe { number, padding: 10 });
        let seq = farhaul_units::SeqNo::new(number.wrapping_mul(0x9E37_79B9) >> 1);
        let field = MessageField { position: Position::Only, in_order: false, message: farhaul_units::MsgNo::FIRST };
        deliver(
            &mut pair,
            Path::Fragment(Fragment { seq, field, total: 8_000, index: 0, count: 8, bytes: &[0; 1_000] }),
        );
    }
    assert!(pair.step());
    assert!(pair.sent - sent < 20, "{} replies", pair.sent - sent);
    let after = pair.ends[1].stats(pair.now, listener).unwrap().memory;
    assert!(after < before + 64 * 8_192, "{before} to {after}");
    assert!(pair.transfer(caller, listener, &data) == data);
    assert_eq!(payload(&pair, caller), 1_456);
}

#[test]
fn larger_packets_keep_the_pace_in_bytes_before_any_feedback() {
    const RATE: f64 = 20e6;
    let mut pair = Pair::new();
    pair.ends = [0, 1].map(|end| {
        let controller = crate::controller_factory("fixed:rate=20mbit".parse().unwrap());
        let config = Config { largest_mss: Some(9_000), controller, ..Config::default() };
        endpoint(config, Entropy { cookie_key: [end as u8; 16], seed: end as u64 })
    });
    let [caller, listener] = pair.connect(Mode::Stream);
    let (bytes, is_silent) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    let (sum, silent) = (Rc::clone(&bytes), Rc::clone(&is_silent));
    pair.keep = Box::new(move |end, datagram| {
        if end == 0 && !is_control(datagram) {
            sum.set(sum.get() + datagram.len() + 28);
        }
        end == 0 || !silent.get()
    });
    let (data, mut out, mut written) = (content(100_000), vec![0; 100_000], 0);
    let mut write = |pair: &mut Pair| {
        let _ = pair.ends[1].read(pair.now, listener, &mut out);
        // Packets that are written keep their size.
        if written < bytes.get() + data.len() {
            written += pair.ends[0].write(pair.now, caller, &data).unwrap();
        }
    };
    pair.run_until(5, |pair| {
        write(pair);
        payload(pair, caller) > 8_000 && pair.ends[0].stats(pair.now, caller).unwrap().totals.acks_received > 0
    });
    is_silent.set(true);
    let (began, before) = (pair.now, bytes.get());
    pair.run_until(1, |pair| {
        write(pair);
        pair.now - began >= Duration::from_millis(200)
    });
    let paced = (pair.now - began).as_secs_f64() * RATE / 8.0;
    let sent = (bytes.get() - before) as f64;
    assert!((0.8..1.2).contains(&(sent / paced)), "{sent} bytes where {paced} are paced");
}
