//! Our server against the bytes of a `tsunami` client.

use farhaul_units::{Duration, Instant};
use farhaul_wire::tsunami::{MessageError, PORT, UnknownRequest};

use super::super::{Fault, ServerEvent, ServerOptions, TransferCounts};
use super::{challenge, start};
use crate::session::OriginalSession as _;
use crate::session::testing::{Watched, train};
use farhaul_proto::channel::ChannelEnd;

type Server = Watched<super::Server>;

const REVISION: &[u8] = b"\x20\x06\x10\x25";
/// MD5 of the challenge 0, 1, … 63 combined with `kitten`.
const PROOF: &[u8] = b"\x2e\xf1\xfa\x32\x91\x3c\x8c\x34\x22\x01\x76\x1d\xf3\xe1\x87\x3e";
/// Blocks of 1000 bytes, 8 Mbit/s, 7.5 %, 25/24, 5/6.
const PARAMETERS: &[u8] = b"\x00\x00\x03\xe8\x00\x7a\x12\x00\x00\x00\x1d\x4c\x00\x19\x00\x18\x00\x05\x00\x06";
/// 46224.
const UDP_PORT: &[u8] = b"\xb4\x90";

fn after(millis: u64) -> Instant {
    start() + Duration::from_millis(millis)
}

fn server() -> Server {
    let secret = b"kitten".to_vec();
    Watched::new(super::Server::new(ServerOptions { secret, ..ServerOptions::default() }, challenge(), start()))
}

fn said(server: &mut Server) -> Vec<u8> {
    super::said(&mut **server, start())
}

/// A server that waits for a name.
fn admitted() -> Server {
    let mut server = server();
    server.handle_channel(start(), &[REVISION, PROOF].concat());
    assert_eq!(said(&mut server), [REVISION, &challenge()[..], b"\0"].concat());
    assert_eq!(server.poll_event(), Some(ServerEvent::Admitted));
    server
}

/// A server in the middle of a file of `size` bytes.
fn sending(size: u64) -> Server {
    let mut server = admitted();
    server.handle_channel(start(), b"vt100.dat\n");
    assert_eq!(server.poll_event(), Some(ServerEvent::Asked(b"vt100.dat".to_vec())));
    server.grant(start(), size, 0x5f5e_1000);
    server.handle_channel(start(), PARAMETERS);
    let mut sizes = vec![0];
    sizes.extend_from_slice(&size.to_be_bytes());
    sizes.extend_from_slice(b"\x00\x00\x03\xe8");
    sizes.extend_from_slice(&(size.div_ceil(1_000) as u32).to_be_bytes());
    sizes.extend_from_slice(b"\x5f\x5e\x10\x00");
    assert_eq!(said(&mut server), sizes);
    server.handle_channel(start(), UDP_PORT);
    let Some(ServerEvent::Started { port: PORT, block_size: 1_000, .. }) = server.poll_event() else {
        panic!("not started")
    };
    server
}

/// A record of 12 bytes.
fn record(kind: u8, padding: [u8; 2], block: u32, error: u32) -> Vec<u8> {
    [&[0, kind][..], &padding, &block.to_be_bytes(), &error.to_be_bytes()].concat()
}

/// Headers of the datagrams that leave until `end`: the number and the letter.
fn headers(server: &mut Server, from: Instant, end: Instant) -> Vec<(u32, char)> {
    let (mut now, mut headers) = (from, Vec::new());
    while now < end {
        let Some((size, out)) = train(&mut **server, now) else {
            now = server.deadline().map_or(end, |next| next.max(now + Duration::from_nanos(1)));
            continue;
        };
        assert_eq!((size, out.len() % size), (1_006, 0), "always the whole block size");
        for datagram in out.chunks(size) {
            let block = u32::from_be_bytes(datagram[..4].try_into().unwrap());
            assert_eq!(datagram[4], 0);
            headers.push((block, char::from(datagram[5])));
        }
    }
    headers
}

/// Why the session failed, and that nothing else happened.
fn failure(server: &mut Server) -> Option<Fault> {
    assert_eq!(server.poll_event(), None);
    server.fault.take()
}

#[test]
fn the_dialogue_of_the_original_client_leads_to_datagrams() {
    let mut server = sending(2_500);
    assert_eq!(headers(&mut server, start(), after(100)), [(1, 'O'), (2, 'O'), (3, 'X')]);
}

#[test]
fn the_last_block_is_repeated_until_the_stop_whose_padding_is_random() {
    for padding in [[0, 0], [0x7f, 0xfc], [0xff, 0xff], [0x55, 0xd0], [0, 1]] {
        let mut server = sending(2_500);
        // The delay is 3 ms at first, so the repetitions are 103 ms apart.
        let sent = headers(&mut server, start(), after(330));
        assert_eq!(sent, [(1, 'O'), (2, 'O'), (3, 'X'), (3, 'X'), (3, 'X'), (3, 'X')]);
        server.handle_channel(after(330), &[&record(2, padding, 0, 0)[..], b"next\n"].concat());
        let counts = TransferCounts { sent: 6, ..TransferCounts::default() };
        assert_eq!(server.poll_event(), Some(ServerEvent::Stopped(counts)));
        assert_eq!(server.poll_event(), Some(ServerEvent::Asked(b"next".to_vec())), "on the same connection");
        assert_eq!(train(&mut *server, after(1_000)), None);
    }
}

/// The original client leaves its loop only when a last block has come.
#[test]
fn an_empty_file_is_a_last_block_of_number_0_that_is_repeated_until_the_stop() {
    let mut server = sending(0);
    // The delay is 3 ms at first, so the repetitions are 103 ms apart.
    assert_eq!(headers(&mut server, start(), after(330)), [(0, 'X'); 4]);
    for (kind, block) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        server.handle_channel(after(330), &record(kind, [0, 0], block, 0));
    }
    assert_eq!(headers(&mut server, after(330), after(450)), [(0, 'X')], "there is nothing to ask for");
    server.handle_channel(after(450), &record(2, [0x12, 0x34], 0, 0));
    let counts = TransferCounts { sent: 5, refused: 4, ..TransferCounts::default() };
    assert_eq!(server.poll_event(), Some(ServerEvent::Stopped(counts)));
    assert_eq!(train(&mut *server, after(1_000)), None);
}

#[test]
fn requested_blocks_take_the_place_of_new_ones() {
    let mut server = sending(1_000_000);
    assert_eq!(headers(&mut server, start(), after(10)), [(1, 'O'), (2, 'O'), (3, 'O'), (4, 'O')]);
    server.handle_channel(after(10), &[record(0, [0, 0], 2, 0), record(0, [0, 0], 4, 0)].concat());
    let sent = headers(&mut server, after(10), after(22));
    assert_eq!(sent, [(2, 'R'), (4, 'R'), (5, 'O'), (6, 'O')]);
}

#[test]
fn a_restart_goes_on_with_the_block_after_the_one_that_it_names() {
    let mut server = sending(1_000_000);
    headers(&mut server, start(), after(60));
    server.handle_channel(after(60), &[record(0, [0, 0], 19, 0), record(1, [0, 0], 10, 0)].concat());
    assert_eq!(headers(&mut server, after(60), after(69)), [(11, 'O'), (12, 'O'), (13, 'O')]);
}

#[test]
fn requests_for_blocks_that_do_not_exist_change_nothing() {
    let mut server = sending(10_000);
    for (kind, block) in [(0, 0), (0, 11), (0, u32::MAX), (1, 0), (1, 11)] {
        server.handle_channel(start(), &record(kind, [0, 0], block, 0));
    }
    let sent = headers(&mut server, start(), after(10));
    assert_eq!(sent, [(1, 'O'), (2, 'O'), (3, 'O'), (4, 'O')]);
    server.handle_channel(after(10), &record(2, [0, 0], 0, 0));
    let counts = TransferCounts { sent: 4, refused: 5, ..TransferCounts::default() };
    assert_eq!(server.poll_event(), Some(ServerEvent::Stopped(counts)));
}

#[test]
fn a_flood_of_requests_is_kept_within_a_bound() {
    let mut server = sending(1_000_000);
    let flood = record(0, [0, 0], 5, 0).repeat(100_000);
    server.handle_channel(start(), &flood);
    server.handle_channel(start(), &record(2, [0, 0], 0, 0));
    let Some(ServerEvent::Stopped(counts)) = server.poll_event() else { panic!("not stopped") };
    assert_eq!(counts.refused, 100_000 - 65_536);
}

#[test]
fn seven_good_reports_lead_to_the_rate_that_the_client_asked_for() {
    let mut server = sending(100_000_000);
    let mut counts = Vec::new();
    for report in 0..9 {
        let now = after(report * 350);
        counts.push(headers(&mut server, now, now + Duration::from_millis(350)).len());
        server.handle_channel(now + Duration::from_millis(350), &record(3, [0, 0], 0, 0));
    }
    // 3 ms, then 5/6 of it per report, then 1 ms.
    for (sent, expected) in counts.iter().zip([117, 140, 168, 202, 242, 290, 348, 350, 350]) {
        assert!(sent.abs_diff(expected) <= 2, "{counts:?}");
    }
}

#[test]
fn a_silent_client_is_slowed_down_for_and_given_up_after_fifteen_seconds() {
    let mut server = sending(1_000_000_000);
    for _ in 0..9 {
        server.handle_channel(start(), &record(3, [0, 0], 0, 0));
    }
    let early = headers(&mut server, start(), after(1_000)).len();
    // After every 2049 datagrams the delay grows by 4 %.
    headers(&mut server, after(1_000), after(13_000));
    let late = headers(&mut server, after(13_000), after(14_000)).len();
    assert!(early >= 999 && late < 850, "{early} at first, {late} later");
    server.handle_timeout(after(14_999));
    assert_eq!(failure(&mut server), None);
    server.handle_timeout(after(15_000));
    assert_eq!(failure(&mut server), Some(Fault::Silent(Duration::from_secs(15))));
    assert_eq!((train(&mut *server, after(15_000)), server.deadline()), (None, None));
}

#[test]
fn a_client_killed_in_mid_transfer_ends_the_datagrams_at_once() {
    let mut server = sending(1_000_000);
    assert!(train(&mut *server, after(10)).is_some());
    server.channel_ended(after(10), ChannelEnd::Finished);
    assert_eq!(failure(&mut server), Some(Fault::ChannelEnded));
    assert_eq!((train(&mut *server, after(11)), server.deadline()), (None, None));
}

#[test]
fn another_revision_or_a_wrong_secret_ends_the_session() {
    let mut other = server();
    other.handle_channel(start(), b"\x20\x05\x01\x30");
    assert_eq!(failure(&mut other), Some(Fault::Message(MessageError::Revision(0x2005_0130))));
    let mut wrong = server();
    wrong.handle_channel(start(), &[REVISION, &[0; 16]].concat());
    assert_eq!(failure(&mut wrong), Some(Fault::WrongSecret));
    assert_eq!(said(&mut wrong), [REVISION, &challenge()[..], b"\x01"].concat());
    wrong.handle_channel(start(), b"file\n");
    assert_eq!((failure(&mut wrong), said(&mut wrong)), (None, Vec::new()), "nothing more is heard");
}

#[test]
fn names_that_lead_out_of_the_folder_are_answered_as_unknown() {
    let mut server = admitted();
    for name in ["/etc/passwd", "../secret", "a/../../b", ""] {
        server.handle_channel(start(), format!("{name}\n").as_bytes());
        assert_eq!(said(&mut server), [8]);
        assert_eq!(server.poll_event(), Some(ServerEvent::NameRefused(name.as_bytes().to_vec())));
    }
    server.handle_channel(start(), &[b'a'; 1_024]);
    let most = MessageError::TooLong { field: "the file name", most: 1_023 };
    assert_eq!(failure(&mut server), Some(Fault::Message(most)));
}

#[test]
fn messages_that_no_client_sends_end_the_session() {
    let asked = || {
        let mut server = admitted();
        server.handle_channel(start(), b"a\n");
        server.poll_event();
        server
    };
    let mut early = asked();
    early.handle_channel(start(), b"b\n");
    assert_eq!(failure(&mut early), Some(Fault::OutOfTurn));

    let mut flood = admitted();
    flood.handle_channel(start(), &b"../a\n".repeat(1_000));
    assert!(matches!(flood.poll_event(), Some(ServerEvent::NameRefused(_))));
    assert_eq!(failure(&mut flood), Some(Fault::OutOfTurn));

    let mut zero = asked();
    zero.grant(start(), 1_000, 0);
    let mut parameters = PARAMETERS.to_vec();
    parameters[14..16].fill(0);
    zero.handle_channel(start(), &parameters);
    assert!(matches!(failure(&mut zero), Some(Fault::Message(MessageError::OutOfRange { .. }))));

    let mut large = asked();
    large.grant(start(), u64::MAX, 0);
    large.handle_channel(start(), PARAMETERS);
    assert_eq!(failure(&mut large), Some(Fault::TooManyBlocks { size: u64::MAX, block: 1_000 }));

    let mut unknown = sending(1_000);
    unknown.handle_channel(start(), &record(9, [0, 0], 0, 0));
    assert_eq!(failure(&mut unknown), Some(Fault::Request(UnknownRequest(9))));
}

#[test]
fn a_client_that_says_nothing_is_given_up_but_one_that_thinks_about_a_name_is_not() {
    let patience = Duration::from_secs(15);
    let mut mute = server();
    assert_eq!(mute.deadline(), Some(start() + patience));
    mute.handle_timeout(start() + patience);
    assert_eq!(failure(&mut mute), Some(Fault::NoAnswer(patience)));
    assert_eq!(admitted().deadline(), None);
}

#[test]
fn lists_are_those_of_the_original() {
    use super::super::Listed;
    let files = [Listed { name: b"vt100.dat".to_vec(), size: 1_024 }, Listed { name: b"../x".to_vec(), size: 1 }];
    let mut server = admitted();
    server.handle_channel(start(), b"!#DIR??\n");
    assert_eq!(server.poll_event(), Some(ServerEvent::ListAsked));
    server.give_list(start(), &files);
    assert_eq!(said(&mut server), b"1\0vt100.dat\x001024\0");
    server.handle_channel(start(), b"\0*\n");
    assert_eq!(server.poll_event(), Some(ServerEvent::ListAsked));
    server.give_list(start(), &files);
    assert_eq!(said(&mut server), b"10\0\0\0\0\0\0\0\x001\0\0\0\0\0\0\0\0\0");
    server.handle_channel(start(), b"got size");
    assert_eq!(said(&mut server), b"vt100.dat\0");
    server.handle_channel(start(), b"got listvt100.dat\n");
    assert_eq!(server.poll_event(), Some(ServerEvent::Asked(b"vt100.dat".to_vec())));
}

/// The original client reads one byte in place of the names, and returns to its prompt. Others confirm the list first.
#[test]
fn a_client_of_a_folder_without_files_reads_the_byte_8_and_may_ask_for_something_else() {
    for (said_next, asked) in [
        (&b"vt100.dat\n"[..], &b"vt100.dat"[..]),
        (b"got listvt100.dat\n", b"vt100.dat"),
        (b"got list\n", b"got list"),
        (b"got lis\n", b"got lis"),
        (b"g\n", b"g"),
    ] {
        let mut server = admitted();
        server.handle_channel(start(), b"*\n");
        assert_eq!(server.poll_event(), Some(ServerEvent::ListAsked));
        server.give_list(start(), &[]);
        assert_eq!(said(&mut server), b"0\0\0\0\0\0\0\0\0\x000\0\0\0\0\0\0\0\0\0");
        server.handle_channel(start(), b"got size");
        assert_eq!(said(&mut server), [8]);
        assert_eq!(server.deadline(), None, "it waits at the prompt");
        server.handle_channel(start(), said_next);
        assert_eq!(server.poll_event(), Some(ServerEvent::Asked(asked.to_vec())), "{}", said_next.escape_ascii());
    }
    let mut server = admitted();
    server.handle_channel(start(), b"*\n");
    server.poll_event();
    server.give_list(start(), &[]);
    server.handle_channel(start(), b"got size");
    server.channel_ended(start(), ChannelEnd::Finished);
    assert_eq!(server.poll_event(), Some(ServerEvent::Ended), "it left in order");
}

#[test]
fn a_client_that_leaves_in_the_opening_or_without_an_answer_was_in_no_transfer() {
    let mut early = server();
    early.handle_channel(start(), REVISION);
    early.channel_ended(start(), ChannelEnd::Finished);
    assert_eq!(failure(&mut early), Some(Fault::EndedInOpening));
    let mut asked = admitted();
    asked.handle_channel(start(), b"a\n");
    asked.poll_event();
    asked.channel_ended(start(), ChannelEnd::Finished);
    assert_eq!(failure(&mut asked), Some(Fault::EndedUnanswered));
}

#[test]
fn the_last_block_is_filled_up_with_zeros() {
    let mut server = sending(2_003);
    let mut now = start();
    let last = loop {
        match train(&mut *server, now) {
            Some((_, datagram)) if datagram[5] == b'X' => break datagram,
            Some(_) => {}
            None => now = server.deadline().unwrap(),
        }
    };
    assert_eq!((&last[..9], last.len()), (&b"\0\0\0\x03\0X\x07\x07\x07"[..], 1_006));
    assert_eq!(last[9..], [0; 997]);
}
