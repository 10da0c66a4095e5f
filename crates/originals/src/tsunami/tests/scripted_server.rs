//! Our client against the bytes of a `tsunamid` server.

use farhaul_units::{Duration, Instant, Rate};
use farhaul_wire::tsunami::{MessageError, PORT};

use super::super::{ClientEvent, ClientOptions, Fault, Listed, NameRefused};
use super::{challenge, start};
use crate::session::testing::Watched;
use crate::session::{DatagramOutcome, OriginalSession as _, Placed};
use farhaul_proto::channel::ChannelEnd;

type Client = Watched<super::Client>;

const REVISION: &[u8] = b"\x20\x06\x10\x25";
const PROOF: &[u8] = b"\x2e\xf1\xfa\x32\x91\x3c\x8c\x34\x22\x01\x76\x1d\xf3\xe1\x87\x3e";
/// Blocks of 1000 bytes, 8 Mbit/s, 7.5 %, 25/24, 5/6.
const PARAMETERS: &[u8] = b"\x00\x00\x03\xe8\x00\x7a\x12\x00\x00\x00\x1d\x4c\x00\x19\x00\x18\x00\x05\x00\x06";
const STOP: &[u8] = b"\0\x02\0\0\0\0\0\0\0\0\0\0";

fn after(millis: u64) -> Instant {
    start() + Duration::from_millis(millis)
}

fn options() -> ClientOptions {
    let rate = Rate::from_megabits_per_second(8);
    ClientOptions { secret: b"kitten".to_vec(), block_size: 1_000, rate, ..ClientOptions::default() }
}

fn new_client(options: ClientOptions) -> Client {
    Watched::new(super::Client::new(options, start()))
}

fn said(client: &mut Client) -> Vec<u8> {
    super::said(&mut **client, start())
}

/// The block of a datagram if it is new.
fn placed<'d>(client: &mut Client, now: Instant, datagram: &'d [u8]) -> Option<Placed<'d>> {
    match client.handle_datagram(now, PORT, datagram) {
        DatagramOutcome::Block(placed) => Some(placed),
        _ => None,
    }
}

fn admitted(options: ClientOptions) -> Client {
    let mut client = new_client(options);
    assert_eq!(said(&mut client), REVISION);
    client.handle_channel(start(), &[REVISION, &challenge()[..]].concat());
    assert_eq!(said(&mut client), PROOF);
    client.handle_channel(start(), b"\0");
    assert_eq!(client.poll_event(), Some(ClientEvent::Admitted));
    client
}

fn sizes(file: u64, block: u32, count: u32) -> Vec<u8> {
    [&file.to_be_bytes()[..], &block.to_be_bytes(), &count.to_be_bytes(), b"\x5f\x5e\x10\x00"].concat()
}

/// A client in the middle of a file of `size` bytes.
fn receiving(size: u64) -> Client {
    let mut client = admitted(options());
    client.get(start(), b"vt100.dat", 46_224).unwrap();
    assert_eq!(said(&mut client), b"vt100.dat\n");
    client.handle_channel(start(), b"\0");
    assert_eq!(said(&mut client), PARAMETERS);
    client.handle_channel(start(), &sizes(size, 1_000, size.div_ceil(1_000) as u32));
    assert_eq!(client.poll_event(), Some(ClientEvent::Granted { size }));
    client
}

/// A datagram of 1006 bytes.
fn datagram(block: u32, letter: u8, content: u8) -> Vec<u8> {
    [&block.to_be_bytes()[..], &[0, letter], &[content; 1_000]].concat()
}

fn request(block: u32) -> Vec<u8> {
    [b"\0\0\0\0", &block.to_be_bytes()[..], b"\0\0\0\0"].concat()
}

/// Why the session failed, and that nothing else happened.
fn failure(client: &mut Client) -> Option<Fault> {
    assert_eq!(client.poll_event(), None);
    client.fault.take()
}

#[test]
fn the_last_block_is_cut_to_the_size_of_the_file_and_the_stop_has_no_padding() {
    let mut client = receiving(2_003);
    assert_eq!(said(&mut client), b"\xb4\x90", "the UDP port");
    for (block, letter, offset, length) in [(1, b'O', 0, 1_000), (3, b'X', 2_000, 3), (2, b'R', 1_000, 1_000)] {
        // The rest of the last block is garbage.
        let datagram = datagram(block, letter, 0xA5);
        let block = placed(&mut client, after(10), &datagram);
        assert_eq!(block, Some(Placed { offset, bytes: &vec![0xA5; length] }));
        assert_eq!(placed(&mut client, after(10), &datagram), None, "a duplicate");
        client.end_batch(after(10));
    }
    assert_eq!(said(&mut client), [request(2), request(2), STOP.to_vec()].concat()[12..]);
    assert_eq!(client.poll_event(), Some(ClientEvent::Done { missing: 0 }));
    assert_eq!(placed(&mut client, after(20), &datagram(3, b'X', 0)), None, "late repetitions");
    assert_eq!(client.get(after(20), b"next", 46_225), Ok(()));
}

#[test]
fn a_last_block_that_is_full_is_not_cut() {
    let mut client = receiving(2_000);
    placed(&mut client, after(1), &datagram(1, b'O', 1));
    let last = datagram(2, b'X', 1);
    assert_eq!(placed(&mut client, after(1), &last).unwrap().bytes.len(), 1_000);
}

#[test]
fn an_empty_file_is_stopped_at_once() {
    let mut client = receiving(0);
    assert_eq!(said(&mut client), [&b"\xb4\x90"[..], STOP].concat());
    assert_eq!(client.poll_event(), Some(ClientEvent::Done { missing: 0 }));
}

#[test]
fn after_fifty_blocks_and_350_ms_the_missing_ones_are_asked_for_and_the_error_rate_reported() {
    let mut client = receiving(1_000_000);
    said(&mut client);
    for block in (1..=60).filter(|block| ![7, 30, 31].contains(block)) {
        placed(&mut client, after(349), &datagram(block, b'O', 1));
        client.end_batch(after(349));
    }
    assert_eq!(said(&mut client), b"", "too early");
    placed(&mut client, after(350), &datagram(61, b'O', 1));
    client.end_batch(after(350));
    // 0.75 · 50 000 · 3/(1 + 3 + 58).
    let report = b"\0\x03\0\0\0\0\0\0\0\0\x07\x16";
    assert_eq!(said(&mut client), [request(7), request(30), request(31), report.to_vec()].concat());
    placed(&mut client, after(800), &datagram(62, b'O', 1));
    client.end_batch(after(800));
    assert_eq!(said(&mut client), b"", "too few blocks");
}

#[test]
fn two_thousand_missing_blocks_make_one_restart() {
    let mut client = receiving(100_000_000);
    said(&mut client);
    for block in (1..=40).chain(2_100..2_120) {
        placed(&mut client, after(400), &datagram(block, b'O', 1));
    }
    client.end_batch(after(400));
    // 0.75 · 50 000 · 2048/(1 + 2048 + 60).
    let rate = (0.75 * 50_000.0 * (2_048.0 / 2_109.0)) as u32;
    let restart = b"\0\x01\0\0\0\0\0\x29\0\0\0\0";
    let report = [&b"\0\x03\0\0\0\0\0\0"[..], &rate.to_be_bytes()].concat();
    assert_eq!(said(&mut client), [&restart[..], &report].concat());
    // Blocks on the wire: half a second at 8 Mbit/s are 500.
    for block in 2_120..2_200 {
        assert!(placed(&mut client, after(800), &datagram(block, b'O', 1)).is_some(), "they are kept");
    }
    client.end_batch(after(800));
    assert_eq!(said(&mut client).len(), 12, "a report alone");
    placed(&mut client, after(810), &datagram(42, b'O', 1));
    for block in 43..=100 {
        placed(&mut client, after(1_200), &datagram(block, b'O', 1));
    }
    client.end_batch(after(1_200));
    assert_eq!(said(&mut client)[..12], request(41), "the restart begins after the block that it names");
}

#[test]
fn datagrams_that_fit_no_block_are_ignored() {
    let mut client = receiving(10_000);
    let short = &datagram(1, b'O', 1)[..1_005];
    let long = [&datagram(1, b'O', 1)[..], b"x"].concat();
    for bytes in [&datagram(0, b'O', 1), &datagram(11, b'O', 1), &datagram(1, b'Q', 1), short, &long, b"", b"\0\0"] {
        assert_eq!(placed(&mut client, after(1), bytes), None);
        client.end_batch(after(1));
    }
    client.handle_timeout(after(3_000));
    assert_eq!(failure(&mut client), Some(Fault::NoDatagrams(Duration::from_secs(3))), "none counts as arrived");
}

#[test]
fn attack_c3_a_block_far_ahead_in_a_file_without_end_takes_no_memory() {
    let mut client = receiving(4_294_967_295_000);
    for block in [u32::MAX, 1 << 31, 1 << 30, (1 << 29) + 1] {
        assert_eq!(placed(&mut client, after(1), &datagram(block, b'O', 1)), None, "{block}");
    }
    // A bit per block, for a quarter of the numbers that have an order: 64 MiB at most.
    assert!(placed(&mut client, after(1), &datagram(1_000_000, b'O', 1)).is_some());
    client.end_batch(after(1));
}

#[test]
fn blocked_udp_is_named_within_three_seconds_and_silence_after_fifteen() {
    let mut client = receiving(10_000);
    assert_eq!(client.deadline(), Some(after(3_000)));
    placed(&mut client, after(2_000), &datagram(1, b'O', 1));
    client.handle_timeout(after(16_999));
    assert_eq!(failure(&mut client), None);
    client.handle_timeout(after(17_000));
    assert_eq!(failure(&mut client), Some(Fault::Silent(Duration::from_secs(15))));
    assert_eq!(client.deadline(), None);
}

#[test]
fn a_server_that_closes_in_mid_transfer_is_named_at_once() {
    let mut client = receiving(10_000);
    client.channel_ended(after(5), ChannelEnd::Finished);
    assert_eq!(failure(&mut client), Some(Fault::ChannelEnded));
}

#[test]
fn a_server_that_closes_in_the_opening_or_before_an_answer_was_in_no_transfer() {
    let before = |bytes: &[u8]| {
        let mut client = new_client(options());
        client.handle_channel(start(), bytes);
        client.channel_ended(after(5), ChannelEnd::Finished);
        failure(&mut client)
    };
    for bytes in [b"", &REVISION[..2], REVISION, &[REVISION, &challenge()[..]].concat()] {
        assert_eq!(before(bytes), Some(Fault::EndedInOpening), "after {} bytes", bytes.len());
    }
    let mut client = admitted(options());
    client.get(start(), b"a", 1).unwrap();
    client.channel_ended(after(5), ChannelEnd::Finished);
    assert_eq!(failure(&mut client), Some(Fault::EndedUnanswered));
    assert!(
        !Fault::EndedInOpening.to_string().contains("transfer") && Fault::WrongSecret.to_string().contains("kitten")
    );
}

/// A client of a folder without files, which has asked for all of them.
fn told_of_no_names() -> Client {
    let mut client = admitted(options());
    client.list_all(start()).unwrap();
    said(&mut client);
    client.handle_channel(start(), b"0\0\0\0\0\0\0\0\0\x000\0\0\0\0\0\0\0\0\0");
    assert_eq!((said(&mut client), client.poll_event()), (b"got size".to_vec(), None));
    client
}

/// A server whose list is a program's says so by a byte, and takes the next name at once.
#[test]
fn a_server_without_files_that_says_so_is_not_told_that_the_list_came() {
    let mut client = told_of_no_names();
    client.handle_channel(after(20), b"\x08");
    assert_eq!(client.poll_event(), Some(ClientEvent::Names(Vec::new())));
    client.get(after(20), b"vt100.dat", 1).unwrap();
    assert_eq!(said(&mut client), b"vt100.dat\n");
}

/// A server whose list is fixed says nothing, and awaits the word.
#[test]
fn a_server_without_files_that_says_nothing_is_told_that_the_list_came_and_a_late_byte_is_ignored() {
    let mut client = told_of_no_names();
    assert_eq!(client.deadline(), Some(after(1_000)));
    client.handle_timeout(after(1_000));
    assert_eq!(client.poll_event(), Some(ClientEvent::Names(Vec::new())));
    client.handle_channel(after(1_100), b"\x08");
    client.get(after(1_200), b"vt100.dat", 1).unwrap();
    assert_eq!((said(&mut client), client.poll_event()), (b"got listvt100.dat\n".to_vec(), None));
    let mut client = told_of_no_names();
    client.channel_ended(after(5), ChannelEnd::Finished);
    assert_eq!(client.poll_event(), Some(ClientEvent::Names(Vec::new())));
    let mut client = told_of_no_names();
    client.handle_channel(after(5), b"x");
    assert_eq!(failure(&mut client), Some(Fault::OutOfTurn));
}

#[test]
fn sizes_that_were_not_asked_for_end_the_session() {
    let answer = |options: ClientOptions, sizes: &[u8]| {
        let mut client = admitted(options);
        client.get(start(), b"a", 1).unwrap();
        client.handle_channel(start(), &[b"\0", sizes].concat());
        failure(&mut client).unwrap()
    };
    let fault = answer(options(), &sizes(10_000, 1_024, 10));
    assert_eq!(fault, Fault::BlockSize { asked: 1_000, answered: 1_024 });
    assert!(matches!(answer(options(), &sizes(10_000, 1_000, 9)), Fault::Message(MessageError::OutOfRange { .. })));
    let limited = ClientOptions { largest: 9_999, ..options() };
    assert_eq!(answer(limited, &sizes(10_000, 1_000, 10)), Fault::TooLarge { size: 10_000, most: 9_999 });
}

#[test]
fn another_revision_a_wrong_secret_and_nonsense_end_the_session() {
    let answer = |bytes: &[u8]| {
        let mut client = new_client(options());
        client.handle_channel(start(), bytes);
        failure(&mut client)
    };
    assert_eq!(answer(b"\x20\x05\x01\x30"), Some(Fault::Message(MessageError::Revision(0x2005_0130))));
    assert_eq!(answer(b"HTTP/1.1 400"), Some(Fault::Message(MessageError::Revision(0x4854_5450))));
    let opening = |byte| [REVISION, &challenge()[..], &[byte]].concat();
    assert_eq!(answer(&opening(1)), Some(Fault::WrongSecret));
    for byte in [2, 8, 255] {
        assert_eq!(answer(&opening(byte)), Some(Fault::Message(MessageError::Answer(byte))));
    }
    let mut client = receiving(10_000);
    client.handle_channel(after(1), b"x");
    assert_eq!(failure(&mut client), Some(Fault::OutOfTurn));
}

#[test]
fn an_unknown_file_leaves_the_connection_open_for_the_next() {
    let mut client = admitted(options());
    client.get(start(), b"nothing", 1).unwrap();
    assert_eq!(client.get(start(), b"a", 1), Err(NameRefused::Busy));
    client.handle_channel(start(), b"\x08");
    assert_eq!(client.poll_event(), Some(ClientEvent::Refused));
    for name in [&b""[..], b"a\nb", b"a\0b", b"*", b"!#DIR??", &[b'a'; 1_024]] {
        assert_eq!(client.get(start(), name, 1), Err(NameRefused::Name));
    }
    assert_eq!(client.get(start(), b"a", 1), Ok(()));
}

#[test]
fn lists_are_read_and_a_server_without_them_is_understood() {
    let mut client = admitted(options());
    client.list(start()).unwrap();
    assert_eq!(said(&mut client), b"!#DIR??\n");
    for byte in b"2\0vt100.dat\x001024\0b\x000\0" {
        client.handle_channel(start(), &[*byte]);
    }
    let files = vec![Listed { name: b"vt100.dat".to_vec(), size: 1_024 }, Listed { name: b"b".to_vec(), size: 0 }];
    assert_eq!((client.poll_event(), said(&mut client)), (Some(ClientEvent::Files(files)), vec![0]));

    client.list_all(start()).unwrap();
    assert_eq!(said(&mut client), b"*\n");
    client.handle_channel(start(), b"12\0\0\0\0\0\0\0\x002\0\0\0\0\0\0\0\0\0");
    assert_eq!(said(&mut client), b"got size");
    client.handle_channel(start(), b"vt100.dat\0b\0");
    let names = vec![b"vt100.dat".to_vec(), b"b".to_vec()];
    assert_eq!((client.poll_event(), said(&mut client)), (Some(ClientEvent::Names(names)), b"got list".to_vec()));

    client.list(start()).unwrap();
    client.handle_channel(start(), b"\x08");
    assert_eq!(client.poll_event(), Some(ClientEvent::Refused));
}

#[test]
fn a_list_beyond_every_limit_ends_the_session() {
    let mut many = admitted(options());
    many.list(start()).unwrap();
    many.handle_channel(start(), b"4000000000\0");
    assert!(matches!(failure(&mut many), Some(Fault::Message(MessageError::OutOfRange { .. }))));
    let mut long = admitted(options());
    long.list(start()).unwrap();
    long.handle_channel(start(), b"1\0");
    long.handle_channel(start(), &[b'a'; 1_024]);
    assert!(matches!(failure(&mut long), Some(Fault::Message(MessageError::TooLong { .. }))));
    let mut more = admitted(options());
    more.list_all(start()).unwrap();
    more.handle_channel(start(), b"4\0\0\0\0\0\0\0\0\x002\0\0\0\0\0\0\0\0\0a\0bcd\0");
    assert!(matches!(failure(&mut more), Some(Fault::Message(MessageError::OutOfRange { value: 6, .. }))));
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    let patience = Duration::from_secs(15);
    let mut client = admitted(options());
    assert_eq!(client.deadline(), None, "nothing was asked");
    client.get(after(100), b"a", 1).unwrap();
    client.handle_timeout(after(100) + patience);
    assert_eq!(failure(&mut client), Some(Fault::NoAnswer(patience)));
}
