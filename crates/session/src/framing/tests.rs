use proptest::prelude::*;

use super::*;
use crate::frame_kind::{MAX_DATA, MAX_ENTRY, MAX_SMALL};

/// All frames in `bytes` if they arrive in pieces of at most `step`, with DATA joined.
fn decode(bytes: &[u8], step: usize) -> Result<Vec<(FrameKind, Vec<u8>)>, Violation> {
    let mut decoder = Decoder::default();
    let mut found: Vec<(FrameKind, Vec<u8>)> = Vec::new();
    for mut block in bytes.chunks(step.max(1)) {
        while let Some(decoded) = decoder.next(&mut block)? {
            match decoded {
                Decoded::Frame(kind, body) => found.push((kind, body.to_vec())),
                Decoded::Data(part) => match found.last_mut() {
                    Some((FrameKind::Data, joined)) => joined.extend_from_slice(part),
                    _ => found.push((FrameKind::Data, part.to_vec())),
                },
            }
        }
        assert!(decoder.held.capacity() <= 2 * MAX_CONTROL);
    }
    Ok(found)
}

fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&u32::try_from(body.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

#[test]
fn bodies_in_one_piece_are_borrowed_from_the_input() {
    let bytes = frame(0x18, b"sixteen byte fld");
    let mut input = &bytes[..];
    let mut decoder = Decoder::default();
    let Ok(Some(Decoded::Frame(FrameKind::Grant, body))) = decoder.next(&mut input) else { panic!("no frame") };
    assert!(std::ptr::eq(body, &raw const bytes[HEADER_LEN..]));
}

#[test]
fn oversized_and_unknown_frames_are_refused_by_their_header_alone() {
    for (kind, limit) in [
        (FrameKind::Data, MAX_DATA),
        (FrameKind::Open, MAX_CONTROL),
        (FrameKind::Entry, MAX_ENTRY),
        (FrameKind::Grant, MAX_SMALL),
    ] {
        let length = u32::try_from(limit + 1).unwrap();
        let mut bytes = vec![kind as u8];
        bytes.extend_from_slice(&length.to_be_bytes());
        let limit = length - 1;
        assert_eq!(decode(&bytes, 9), Err(Violation::Oversized { kind, length, limit }));
    }
    assert_eq!(decode(&frame(0x7f, b""), 9), Err(Violation::UnknownFrame(0x7f)));
    assert!(decode(&frame(0x11, b""), 9).is_err(), "an empty DATA frame moves nothing forward");
}

#[test]
fn extensions_are_skipped_within_bounds() {
    let mut bytes = frame(0x80, &[7; 300]);
    bytes.extend(frame(0xff, b""));
    bytes.extend(frame(0x1c, b"done"));
    assert_eq!(decode(&bytes, 11), Ok(vec![(FrameKind::Done, b"done".to_vec())]));
    assert_eq!(decode(&[0x80, 0, 1, 0, 1], 9), Err(Violation::UnknownFrame(0x80)));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic_and_fragmentation_changes_nothing(
        bytes in proptest::collection::vec(prop_oneof![3 => any::<u8>(), 2 => Just(0u8), 1 => 0x10u8..0x20], 0..300),
        step in 1usize..40,
    ) {
        prop_assert_eq!(decode(&bytes, step), decode(&bytes, usize::MAX));
    }

    #[test]
    fn frames_survive_any_fragmentation(
        bodies in proptest::collection::vec((0u8..3, proptest::collection::vec(any::<u8>(), 1..50)), 0..10),
        step in 1usize..40,
    ) {
        let kinds = [FrameKind::Entry, FrameKind::Done, FrameKind::Open];
        let mut bytes = Vec::new();
        let mut sent = Vec::new();
        for (pick, body) in bodies {
            let kind = kinds[usize::from(pick)];
            put_frame(&mut bytes, kind, |out| out.extend_from_slice(&body));
            sent.push((kind, body));
        }
        prop_assert_eq!(decode(&bytes, step), Ok(sent));
    }
}
