use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::error::{Abort, AbortCode};
use crate::handshake::Acceptor;
use crate::refusal::refusal;

const BONDING: Bonding = Bonding { flows: 4, token: Token([7; 16]) };
const JOIN: Join = Join { token: Token([7; 16]), index: 2 };

fn open(bytes: &[u8]) -> Open {
    Acceptor::new().handle_received(bytes).unwrap().1.expect("the opening is complete")
}

#[test]
fn the_openings_survive_encoding() {
    let stream = open(&BONDING.open_frame());
    assert_eq!((stream.request, stream.bonding), (Request::Stream, Some(BONDING)));
    let join = open(&JOIN.open_frame());
    assert_eq!((join.request, join.bonding), (Request::Join(JOIN), None));
}

#[test]
fn each_flow_that_was_offered_has_a_number_and_no_other_one() {
    let admitted: Vec<u8> = (0..=u8::MAX).filter(|&index| BONDING.admits(index)).collect();
    assert_eq!(admitted, [1, 2, 3, 4]);
    let many = Bonding { flows: u8::MAX, ..BONDING };
    assert_eq!((0..=u8::MAX).filter(|&index| many.admits(index)).count(), usize::from(MAX_FLOWS));
}

#[test]
fn the_token_is_not_shown() {
    assert!(!format!("{BONDING:?} {JOIN:?}").contains('7'));
}

#[test]
fn a_flow_learns_whether_it_has_joined() {
    let mut bytes = join_accepted();
    let len = bytes.len();
    bytes.extend_from_slice(b"blocks");
    assert_eq!(JoinAnswer::default().handle_received(&bytes), Ok((len, true)));
    let mut slow = JoinAnswer::default();
    let joined: Vec<bool> = bytes[..len].iter().map(|byte| slow.handle_received(&[*byte]).unwrap().1).collect();
    assert_eq!(joined.iter().position(|joined| *joined), Some(len - 1));
    let refused = JoinAnswer::default().handle_received(&refusal(AbortCode::Refused, "no"));
    assert_eq!(refused, Err(SessionError::PeerAborted(Abort { code: AbortCode::Refused, message: "no".into() })));
    assert_eq!(JoinAnswer::default().handle_received(&BONDING.open_frame()), Err(SessionError::NotFarhaul));
}

#[test]
fn records_survive_encoding_and_others_are_refused() {
    for record in [
        Record::Block { offset: 0, len: 1 },
        Record::Block { offset: u64::MAX - MAX_BLOCK as u64, len: MAX_BLOCK },
        Record::Ready,
        Record::Total { total: 0, flows: 1 },
        Record::Total { total: u64::MAX, flows: usize::from(MAX_FLOWS) },
    ] {
        assert_eq!(Record::from_bytes(record.to_bytes()), Ok(record));
    }
    let with = |at: usize, value: u8| {
        let mut bytes = Record::Block { offset: 1, len: 2 }.to_bytes();
        bytes[at] = value;
        Record::from_bytes(bytes)
    };
    assert_eq!(with(0, 0x11), Err(Violation::UnknownFrame(0x11)));
    assert!(with(1, 1).is_err(), "too long");
    assert!(with(4, 0).is_err(), "empty");
    let beyond =
        [Record::Block { offset: u64::MAX, len: 2 }.to_bytes(), Record::Block { offset: 5, len: 1 }.to_bytes()];
    assert!(Record::from_bytes(beyond[0]).is_err() && Record::from_bytes(beyond[1]).is_ok());
    let mut total = Record::Total { total: 3, flows: 1 }.to_bytes();
    total[4] = MAX_FLOWS + 1;
    assert!(Record::from_bytes(total).is_err());
}

/// What the beginning of these bytes is, which come in pieces of this length, and the bytes of the stream itself.
fn begins(bytes: &[u8], piece: usize) -> (Begun, Vec<u8>) {
    let mut beginning = Beginning::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(piece.min(rest.len()));
        let (begun, used) = beginning.handle_received(now);
        match begun {
            Begun::Unknown => rest = later,
            Begun::Bytes => return (begun, bytes.to_vec()),
            Begun::Bonded(_) => return (begun, [&now[used..], later].concat()),
        }
    }
    (Begun::Unknown, beginning.into_head())
}

#[test]
fn a_stream_with_flows_is_told_from_bytes_at_the_first_byte_that_differs() {
    let opening = BONDING.open_frame();
    for piece in [1, 7, opening.len(), 1000] {
        let whole = [&opening[..], b"the stream"].concat();
        assert_eq!(begins(&whole, piece), (Begun::Bonded(BONDING), b"the stream".to_vec()));
        assert_eq!(begins(&opening[..opening.len() - 1], piece).0, Begun::Unknown);
        assert_eq!(begins(b"any bytes at all, which are longer than the opening of flows", piece).0, Begun::Bytes);
    }
    // The opening of a copy is bytes to a pipe.
    let copy = crate::FileSender::push(crate::Push::default()).first_frame().to_vec();
    assert_eq!(begins(&copy, 1).0, Begun::Bytes);
    assert_eq!(begins(&[], 1), (Begun::Unknown, Vec::new()));
}

#[test]
fn blocks_that_do_not_make_a_stream_are_found() {
    let mut order = Reassembly::new(10, 1000);
    order.insert(20, 10, ()).unwrap();
    for (offset, len) in [(20, 10), (15, 6), (29, 1), (19, 20), (0, 5), (9, 2), (25, 1)] {
        assert_eq!(order.insert(offset, len, ()), Err(Disorder::Overlap), "{offset}+{len}");
    }
    assert_eq!(order.end_at(29), Err(Disorder::BeyondEnd));
    order.end_at(40).unwrap();
    assert_eq!(order.end_at(41), Err(Disorder::TwoEnds));
    let mut order = Reassembly::new(0, 1000);
    order.end_at(5).unwrap();
    assert_eq!(order.insert(3, 3, ()), Err(Disorder::BeyondEnd));
    assert_eq!(order.insert(u64::MAX, 3, ()), Err(Disorder::BeyondEnd));
}

#[test]
fn bytes_that_come_by_another_path_count() {
    let mut order = Reassembly::new(0, 100);
    order.insert(50, 10, 'b').unwrap();
    order.advance(30).unwrap();
    order.advance(20).unwrap();
    assert_eq!(order.advance(1), Err(Disorder::Overlap));
    assert_eq!((order.take(), order.next()), (Some('b'), 60));
    order.end_at(61).unwrap();
    assert_eq!((order.advance(2), order.advance(1), order.is_over()), (Err(Disorder::BeyondEnd), Ok(()), true));
}

#[test]
fn many_tiny_blocks_are_held_back_before_they_fill_the_window() {
    let mut order = Reassembly::new(0, u64::from(u32::MAX));
    let mut offset = 2;
    while order.admits(offset, 1) {
        order.insert(offset, 1, ()).unwrap();
        offset += 2;
    }
    assert!(offset < 10_000 && order.held_bytes() < 5_000);
    assert!(order.admits(0, 1), "the block that is due");
}

/// A stream cut into blocks, which travel over these flows.
#[derive(Clone, Debug)]
struct Sent {
    flows: Vec<VecDeque<(u64, usize)>>,
    total: u64,
}

fn sent() -> impl Strategy<Value = Sent> {
    (1usize..=5).prop_flat_map(|count| {
        proptest::collection::vec((1usize..40, 0..count), 0..60).prop_map(move |blocks| {
            let (mut flows, mut total) = (vec![VecDeque::new(); count], 0);
            for (len, flow) in blocks {
                flows[flow].push_back((total, len));
                total += len as u64;
            }
            Sent { flows, total }
        })
    })
}

/// Takes what is in order, and checks that it goes on from `taken`.
fn drain(order: &mut Reassembly<(u64, usize)>, taken: &mut u64) {
    while let Some((offset, len)) = order.take() {
        assert_eq!(offset, *taken);
        *taken += len as u64;
    }
}

proptest! {
    /// Whatever the order of arrival, the stream comes out whole and in order, within the window, and never stands still.
    #[test]
    fn any_interleaving_gives_the_stream(sent in sent(), window in 0u64..120, choices in proptest::collection::vec(any::<u16>(), 200)) {
        let (mut order, mut taken, mut flows) = (Reassembly::new(0, window), 0, sent.flows);
        let mut choices = choices.into_iter().cycle();
        while flows.iter().any(|flow| !flow.is_empty()) {
            let ready: Vec<usize> = (0..flows.len())
                .filter(|&flow| flows[flow].front().is_some_and(|&(offset, len)| order.admits(offset, len)))
                .collect();
            let choice = usize::from(choices.next().unwrap());
            if ready.is_empty() || choice % 3 == 0 {
                let before = taken;
                drain(&mut order, &mut taken);
                prop_assert!(!ready.is_empty() || taken > before, "the stream stands still");
                continue;
            }
            let flow = ready[choice % ready.len()];
            let (offset, len) = flows[flow].pop_front().unwrap();
            order.insert(offset, len, (offset, len)).unwrap();
            prop_assert!(order.held_bytes() <= window + 40, "the block that is due may exceed the window");
            if flows[flow].is_empty() {
                order.end_at(sent.total).unwrap();
            }
        }
        order.end_at(sent.total).unwrap();
        prop_assert!(order.has_all());
        drain(&mut order, &mut taken);
        prop_assert!(order.is_over() && taken == sent.total && order.is_empty());
    }

    /// Without the rest of one flow, what comes out is the stream up to its first missing block, and never its end.
    #[test]
    fn a_lost_flow_never_looks_like_the_end(sent in sent(), lost in any::<prop::sample::Index>(), kept in any::<prop::sample::Index>()) {
        let mut flows = sent.flows;
        let lost = lost.index(flows.len());
        prop_assume!(!flows[lost].is_empty());
        let kept = kept.index(flows[lost].len());
        let missing = flows[lost][kept].0;
        flows[lost].truncate(kept);
        let (mut order, mut taken) = (Reassembly::new(0, u64::MAX), 0);
        for (offset, len) in flows.into_iter().flatten() {
            order.insert(offset, len, (offset, len)).unwrap();
        }
        order.end_at(sent.total).unwrap();
        drain(&mut order, &mut taken);
        prop_assert_eq!(taken, missing);
        prop_assert!(!order.is_over() && !order.has_all());
    }

    #[test]
    fn no_bytes_make_it_panic(blocks in proptest::collection::vec((any::<u64>(), 0usize..100, any::<bool>()), 0..50)) {
        let mut order = Reassembly::new(0, 1000);
        for (offset, len, is_end) in blocks {
            if is_end {
                let _ = order.end_at(offset % 500);
            } else if order.admits(offset % 2000, len) {
                let _ = order.insert(offset % 2000, len, ());
            } else {
                let _ = order.insert(offset, len, ());
            }
            let _ = (order.take(), order.has_all(), order.is_over());
        }
    }

    #[test]
    fn no_bytes_make_a_wrong_record(bytes in any::<[u8; BLOCK_HEADER]>()) {
        if let Ok(record) = Record::from_bytes(bytes) {
            prop_assert_eq!(record.to_bytes(), bytes);
        }
    }
}
