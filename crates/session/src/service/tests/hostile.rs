//! Peers that violate the protocol.

use super::*;
use crate::error::{SessionError, Violation};
use crate::failure::FailCode;
use crate::frame_kind::FrameKind;
use crate::framing::put_frame;
use crate::handshake::Accept;
use crate::manifest::Stamp;
use crate::service::answer::{FileVersion, RangeEnd};

fn frame(kind: FrameKind, parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_frame(&mut bytes, kind, |out| parts.iter().for_each(|part| out.extend_from_slice(part)));
    bytes
}

fn id(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn request(number: u32, request: &FileRequest) -> Vec<u8> {
    let mut body = Vec::new();
    request.encode(&mut body);
    frame(FrameKind::Request, &[&id(number), &body])
}

/// A server with one file that a client has called.
fn server() -> FileServer<MemoryFiles> {
    let (_, open) = Acceptor::new().handle_received(FileClient::connect().poll_write()).unwrap();
    FileServer::answer(&open.unwrap(), MemoryFiles::new(tree(&[("f", 100_000)])))
}

/// The violation that a server finds in these frames.
fn found(frames: &[Vec<u8>]) -> Violation {
    let mut server = server();
    match server.handle_received(&frames.concat()) {
        Err(SessionError::PeerMisbehaved(violation)) => {
            assert!(server.is_over() && server.handle_received(b"ignored").is_ok());
            violation
        }
        other => panic!("{other:?}"),
    }
}

/// The violation that a client finds, which has read the beginning of `f` and put `new` as its first requests.
fn found_by_client(frames: &[Vec<u8>]) -> Violation {
    let mut client = FileClient::connect();
    client.request(&read("f", ReadFrom::Start(0), 10)).unwrap();
    client.request(&put("new", None, Existing::Keep)).unwrap();
    let mut accept = Vec::new();
    Accept::new(1 << 20).put(&mut accept);
    client.handle_received(&accept).unwrap();
    match client.handle_received(&frames.concat()) {
        Err(SessionError::PeerMisbehaved(violation)) => violation,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_that_asks_endlessly_and_never_reads_makes_no_server_grow() {
    let mut server = server();
    let many: Vec<u8> = (0..200).flat_map(|number| request(number, &FileRequest::Stat(place("f")))).collect();
    let Err(SessionError::PeerMisbehaved(violation)) = server.handle_received(&many) else { panic!() };
    assert_eq!(violation, Violation::Limit("requests"));
    // Puts that fail at once count until they have their answer.
    let refused = |number| request(number, &put("f", None, Existing::Keep));
    let mut server = self::server();
    let most = u32::try_from(MAX_PUTS).unwrap();
    for number in 0..=most {
        let said = [refused(number), frame(FrameKind::Cancel, &[&id(number)])].concat();
        let expected = if number < most { Ok(()) } else { Err(Violation::Limit("puts").into()) };
        assert_eq!(server.handle_received(&said), expected);
    }
}

#[test]
fn numbers_and_credit_are_checked() {
    let stat = FileRequest::Stat(place("f"));
    assert_eq!(found(&[request(1, &stat), request(1, &stat)]), Violation::SameNumber);
    let block = |number, len: usize| frame(FrameKind::Block, &[&id(number), &vec![7; len]]);
    assert_eq!(found(&[block(1, 5)]), Violation::NoSuchRequest);
    assert_eq!(found(&[request(1, &stat), block(1, 5)]), Violation::NoSuchRequest);
    assert!(matches!(found(&[request(1, &put("n", None, Existing::Keep)), block(1, 0)]), Violation::Malformed { .. }));
    assert_eq!(found(&[frame(FrameKind::Finish, &[&id(1), &[0; 32]])]), Violation::NoSuchRequest);
    assert_eq!(found(&[frame(FrameKind::Grant, &[&[0; 8]])]), Violation::CreditWithdrawn);
    let end = frame(FrameKind::End, &[]);
    assert_eq!(
        found(&[request(1, &put("n", None, Existing::Keep)), end.clone()]),
        Violation::OutOfPlace(FrameKind::End)
    );
    assert_eq!(found(&[end, request(1, &stat)]), Violation::OutOfPlace(FrameKind::Request));
    for kind in [FrameKind::Answer, FrameKind::Data, FrameKind::Open, FrameKind::Entry] {
        assert_eq!(found(&[frame(kind, &[&[0; 40]])]), Violation::OutOfPlace(kind));
    }
    // The limit stands in the header already.
    let oversized = [FrameKind::Request as u8, 0, 1, 0, 0];
    assert!(matches!(found(&[oversized.to_vec()]), Violation::Oversized { .. }));
}

#[test]
fn a_put_with_another_digest_leaves_nothing() {
    let mut server = server();
    let said = [
        request(5, &put("n", Some(3), Existing::Keep)),
        frame(FrameKind::Block, &[&id(5), b"abc"]),
        frame(FrameKind::Finish, &[&id(5), &[0; 32]]),
    ];
    server.handle_received(&said.concat()).unwrap();
    let accepted = server.poll_write().len();
    server.handle_written(accepted);
    let answer = server.poll_write().to_vec();
    assert_eq!(
        answer[..12],
        frame(FrameKind::Answer, &[&id(5), &[1], &FailCode::DigestMismatch.to_wire().to_be_bytes()])
    );
    assert_eq!(server.files().tree.len(), 1);
}

#[test]
fn a_request_of_a_later_version_fails_alone() {
    let mut server = server();
    server.handle_received(&frame(FrameKind::Request, &[&id(1), &[77], b"of a later version"])).unwrap();
    let accepted = server.poll_write().len();
    server.handle_written(accepted);
    let answer = server.poll_write().to_vec();
    let failure = Failure::new(FailCode::Unsupported, "this server is older than the request: update it");
    let mut expected = Vec::new();
    failure.encode(&mut expected);
    assert_eq!(answer, frame(FrameKind::Answer, &[&id(1), &[1], &expected]));
}

#[test]
fn a_client_takes_what_it_requested_and_nothing_else() {
    let block = |number, bytes: &[u8]| frame(FrameKind::Block, &[&id(number), bytes]);
    let end = |length: u64| [&[0u8; 9][..], &length.to_be_bytes(), &[0; 52]].concat();
    assert_eq!(found_by_client(&[block(7, b"x")]), Violation::NoSuchRequest);
    assert_eq!(found_by_client(&[block(1, b"x")]), Violation::NoSuchRequest);
    assert_eq!(found_by_client(&[block(0, &[0; 11])]), Violation::Limit("bytes of a range"));
    assert_eq!(found_by_client(&[block(0, &[0; 6]), block(0, &[0; 5])]), Violation::Limit("bytes of a range"));
    let answer = |number: u32, body: &[u8]| frame(FrameKind::Answer, &[&id(number), body]);
    assert_eq!(found_by_client(&[answer(7, &[0])]), Violation::NoSuchRequest);
    assert_eq!(found_by_client(&[answer(0, &[&[0][..], &end(9)].concat())]), Violation::Counts, "a lying length");
    assert!(matches!(found_by_client(&[answer(0, &[0, 0])]), Violation::Malformed { .. }));
    let early = [&[0][..], &[0; 8]].concat();
    assert_eq!(found_by_client(&[answer(1, &early)]), Violation::OutOfPlace(FrameKind::Answer), "before its end");
    assert_eq!(found_by_client(&[frame(FrameKind::Done, &[])]), Violation::OutOfPlace(FrameKind::Done));
}

/// The end of a range of three bytes.
fn range_end(offset: u64, at_end: bool, size: u64) -> RangeEnd {
    let version = FileVersion { stamp: Stamp { size, mtime: crate::Mtime::default() }, ctime: None };
    RangeEnd { offset, length: 3, digest: Digest::of(b"abc"), version, at_end, changed: false }
}

#[test]
fn a_range_is_the_one_that_was_requested_and_short_only_at_the_end_of_its_file() {
    let answered = |from, length, end: &RangeEnd| {
        let mut client = FileClient::connect();
        client.request(&read("f", from, length)).unwrap();
        let mut said = Vec::new();
        Accept::new(1 << 20).put(&mut said);
        let mut body = vec![0; 5];
        end.encode(&mut body);
        said.extend(frame(FrameKind::Block, &[&[0; 4], b"abc"]));
        said.extend(frame(FrameKind::Answer, &[&body]));
        client.handle_received(&said)
    };
    let counts = Err(Violation::Counts.into());
    let start = ReadFrom::Start(7);
    for (from, length, end, expected) in [
        (start, 3, range_end(7, false, 100), Ok(())),
        (start, 10, range_end(7, true, 10), Ok(())),
        (ReadFrom::End(3), 3, range_end(7, true, 10), Ok(())),
        (ReadFrom::End(30), 30, range_end(0, true, 3), Ok(())),
        // The system makes it when it is read.
        (start, 10, range_end(7, true, 0), Ok(())),
        (ReadFrom::End(100), 100, range_end(3_996, true, 0), Ok(())),
        (start, 3, range_end(8, false, 100), counts.clone()),
        (start, 3, range_end(u64::MAX, true, 100), counts.clone()),
        (ReadFrom::End(3), 3, range_end(0, false, 100), counts.clone()),
        (start, 10, range_end(7, false, 100), counts.clone()),
        (start, 10, range_end(7, true, 3 << 20), counts),
    ] {
        assert_eq!(answered(from, length, &end), expected, "{from:?} {length} {end:?}");
    }
}

#[test]
fn bytes_with_another_digest_are_no_answer() {
    let mut client = FileClient::connect();
    let id = client.request(&read("f", ReadFrom::Start(0), 10)).unwrap();
    let mut said = Vec::new();
    Accept::new(1 << 20).put(&mut said);
    let length = 3u64.to_be_bytes();
    said.extend(frame(FrameKind::Block, &[&[0; 4], b"abc"]));
    said.extend(frame(FrameKind::Answer, &[&[0; 4], &[0, 1], &[0; 8], &length, &[9; 32], &[0; 20]]));
    client.handle_received(&said).unwrap();
    assert_eq!(client.poll_event(), Some(ReplyEvent::Accepted));
    assert_eq!(client.poll_event(), Some(ReplyEvent::Answered(id, Err(FailCode::DigestMismatch.into()))));
}

#[test]
fn pages_that_would_lead_in_circles_are_refused() {
    let mut page = ListPage::default();
    let info = FileInfo {
        kind: NodeKind::File,
        size: 1,
        mode: 0o600,
        mtime: crate::Mtime::default(),
        ctime: None,
        target: None,
        owner: None,
    };
    for name in [b"b", b"a"] {
        let name = crate::Component::new(name).unwrap();
        page.entries.push(ListedEntry { name, info: info.clone() });
    }
    let mut bytes = Vec::new();
    page.encode(&mut bytes);
    assert!(ListPage::decode(&mut crate::field::Fields::new(&bytes)).is_err());
    page.entries.reverse();
    bytes.clear();
    page.encode(&mut bytes);
    assert_eq!(ListPage::decode(&mut crate::field::Fields::new(&bytes)), Ok(page));
}
