//! The decoders of FOBS.

use bolero::check;
use farhaul_wire::fobs::{
    Record, Terms, encode_ack, encode_completed, encode_done, encode_feedback, encode_segment, split,
};

/// A little more than a bitmap of 10 000 packets.
const MAX_BYTES: usize = 1_500;

#[test]
fn datagram() {
    check!().with_max_len(MAX_BYTES).with_iterations(1_000).for_each(|datagram: &[u8]| {
        let Ok((number, payload)) = split(datagram) else { return };
        let again = [&number.value().to_be_bytes()[..], payload].concat();
        assert_eq!((again.as_slice(), payload.is_empty()), (datagram, false));
    });
}

/// Records one after another, as the channel brings them.
#[test]
fn records() {
    check!().with_max_len(MAX_BYTES).with_iterations(1_000).for_each(|bytes: &[u8]| {
        let (mut rest, mut encoded) = (bytes, Vec::new());
        while let Ok(Some((record, length))) = Record::decode(rest) {
            encoded.clear();
            match record {
                Record::Done { end, bytes } => encode_done(end, bytes, &mut encoded),
                Record::Segment(segment) => encode_segment(segment, &mut encoded),
                Record::Feedback(segment, bitmap) => {
                    encode_feedback(segment, bitmap.missing(segment.range), &mut encoded);
                }
                Record::Ack(segment, bitmap) => encode_ack(segment.range, bitmap.missing(segment.range), &mut encoded),
                Record::Completed(end) => encode_completed(end, &mut encoded),
            }
            // The number of an acknowledgement has no meaning.
            let meaningless = if matches!(record, Record::Ack(..)) { 1..5 } else { 0..0 };
            encoded.splice(meaningless.clone(), rest[meaningless].iter().copied());
            assert_eq!(encoded, &rest[..length]);
            rest = &rest[length..];
        }
    });
}

#[test]
fn terms() {
    check!().with_max_len(2 * Terms::LEN).with_iterations(1_000).for_each(|hello: &[u8]| {
        if let Ok(terms) = Terms::decode(hello) {
            assert!(hello.is_empty() || terms.encode() == hello);
        }
    });
}
