//! The decoders of Hurricane.

use bolero::check;
use farhaul_wire::hurricane::{Record, Terms, encode_missing, encode_sent, split};

/// A little more than a list of some hundred groups.
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
                Record::Sent(end) => encode_sent(end, &mut encoded),
                Record::Missing(groups) => {
                    let groups: Vec<_> = groups.iter().collect();
                    assert!(!groups.is_empty() && groups.iter().all(|group| !group.is_empty()));
                    assert_eq!(encode_missing(groups.iter().copied(), &mut encoded), groups.len());
                }
            }
            assert_eq!(encoded, &rest[..length]);
            rest = &rest[length..];
        }
    });
}

#[test]
fn terms() {
    check!().with_max_len(2 * Terms::LEN).with_iterations(1_000).for_each(|hello: &[u8]| match Terms::decode(hello) {
        Ok(terms) => assert!(hello.is_empty() || terms.encode() == hello),
        Err(_) => assert_ne!(hello.len(), Terms::LEN),
    });
}
