//! Tsunami: the decoders, and both sessions with programs of the original.

mod sessions;

use bolero::check;
use farhaul_wire::tsunami::{
    Answer, HEADER_LEN, Header, ListingEntry, MAX_ENTRIES, MAX_LISTING, MAX_NAME, Parameters, Request, Sizes, Totals,
    check_revision, encode_count, encode_name, read_count, read_name, read_text,
};

/// Longest message in bytes: a name beyond its limit.
const MAX_MESSAGE: usize = 1_100;
/// Longest list of operations on a session in bytes.
const MAX_SCRIPT: usize = 2_000;

/// Whatever a decoder takes is written back to the same bytes.
#[test]
fn messages() {
    check!().with_max_len(MAX_MESSAGE).with_iterations(2_000).for_each(|bytes: &[u8]| {
        fixed_messages(bytes);
        texts(bytes);
        if let Ok((header, rest)) = Header::split(bytes) {
            assert_eq!(header.bytes(), bytes[..HEADER_LEN]);
            assert_eq!(rest, &bytes[HEADER_LEN..]);
        }
    });
}

fn fixed_messages(bytes: &[u8]) {
    let mut out = Vec::new();
    assert!(check_revision(bytes).is_err() || bytes.len() < 4 || bytes.starts_with(b"\x20\x06\x10\x25"));
    if let Some(answer) = bytes.first().and_then(|byte| Answer::from_byte(*byte).ok()) {
        assert_eq!(answer.byte(), bytes[0]);
    }
    if let Ok(Some(parameters)) = Parameters::decode(bytes) {
        parameters.encode(&mut out);
        assert_eq!(out, bytes[..Parameters::LEN]);
        assert!(parameters.slower.value().is_finite() && parameters.faster.value().is_finite());
        out.clear();
    }
    if let Ok(Some(sizes)) = Sizes::decode(bytes) {
        sizes.encode(&mut out);
        assert_eq!(out, bytes[..Sizes::LEN]);
        assert_eq!(
            (sizes.place(0), sizes.place(sizes.count.saturating_add(1)).is_some()),
            (None, sizes.count == u32::MAX)
        );
        let end = sizes.place(sizes.count).map_or(0, |(offset, length)| offset + length as u64);
        assert_eq!(end, sizes.file, "the last block ends with the file");
    }
    if let Some(request) = bytes.first_chunk().and_then(|record| Request::decode(record).ok()) {
        assert_eq!(Request::decode(&request.bytes()), Ok(request));
        assert_eq!(request.bytes()[..2], bytes[..2]);
        assert_eq!(request.bytes()[2..4], [0, 0], "padding is never sent");
    }
}

fn texts(bytes: &[u8]) {
    let mut out = Vec::new();
    if let Ok(Some((name, length))) = read_name(bytes) {
        encode_name(name, &mut out);
        assert_eq!(out[..length - 1], bytes[..length - 1]);
        assert!(name.len() <= MAX_NAME);
        out.clear();
    }
    if let Ok(Some((count, length))) = read_count(bytes) {
        encode_count(count, &mut out);
        assert!(count <= MAX_ENTRIES && out.len() <= length, "leading zeros are read and not written");
        out.clear();
    }
    if let Ok(Some((entry, length))) = ListingEntry::decode(bytes) {
        entry.encode(&mut out);
        let (again, written) = ListingEntry::decode(&out).expect("it was written").expect("all of it");
        assert_eq!((again, written), (entry, out.len()));
        assert!(written <= length);
        out.clear();
    }
    if let Ok(Some(totals)) = Totals::decode(bytes) {
        assert!(totals.bytes <= MAX_LISTING && totals.names <= MAX_ENTRIES);
        totals.encode(&mut out);
        assert_eq!(Totals::decode(&out), Ok(Some(totals)));
    }
    if let Ok(Some((text, length))) = read_text(bytes, "a text", 100) {
        assert_eq!((text, bytes[length - 1]), (&bytes[..length - 1], 0));
    }
}

/// A client's bytes into a server.
#[test]
fn server() {
    check!().with_max_len(MAX_SCRIPT).with_iterations(2_000).for_each(sessions::run_server);
}

/// A server's bytes and datagrams into a client.
#[test]
fn client() {
    check!().with_max_len(MAX_SCRIPT).with_iterations(2_000).for_each(sessions::run_client);
}

/// Bolero's own inputs are mostly short, but errors of transfers need long ones.
#[test]
fn long_scripts() {
    for seed in 0..1_000 {
        let mut rng = farhaul_units::Rng::new(seed);
        let length = rng.below(MAX_SCRIPT as u64) as usize;
        let script: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
        sessions::run_server(&script);
        sessions::run_client(&script);
    }
}
