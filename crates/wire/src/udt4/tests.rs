use super::*;

#[test]
fn short_datagrams_are_refused_and_peeked_at_safely() {
    for length in 0..HEADER_LEN {
        let bytes = vec![0xFF; length];
        assert_eq!(Packet::decode(&bytes), Err(DecodeError::TooShort { length }));
        assert_eq!(destination(&bytes), None);
    }
}
