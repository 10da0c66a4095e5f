use std::sync::Arc;

use farhaul_units::Rate;
use proptest::prelude::*;

use super::*;
use crate::error::AbortCode;
use crate::path_rules::RelPath;
use crate::refusal::{MAX_REFUSAL, received_abort, refusal, refusal_in, refusal_of};
use crate::request::measurement::{BenchSpec, Direction, Stop};
use crate::request::{CopyScope, Pull, Push, RequestError};
use crate::rules::Rules;
use crate::sender_request::SenderSettings;

fn accept(bytes: &[u8]) -> Result<Open, SessionError> {
    let mut acceptor = Acceptor::new();
    for byte in bytes {
        if let (_, Some(open)) = acceptor.handle_received(std::slice::from_ref(byte))? {
            return Ok(open);
        }
    }
    panic!("no opening in {} bytes", bytes.len());
}

fn wire(open: &Open) -> Vec<u8> {
    let mut bytes = Vec::new();
    open.put(&mut bytes);
    bytes
}

fn bench() -> Open {
    Open::new(Request::Bench(BenchSpec { direction: Direction::Forward, stop: Stop::Bytes(1) }), 3)
}

#[test]
fn every_request_survives_encoding() {
    let target = RelPath::parse(b"in/here").unwrap();
    let paths = vec![RelPath::root(), RelPath::parse(b"\xff/b").unwrap()];
    let scope = || CopyScope { paths: paths.clone(), ..CopyScope::default() };
    for request in [
        Request::Push(Push { target, target_is_directory: true, rules: Rules { dry_run: true, ..Rules::default() } }),
        Request::from(CopyScope { recursive: true, ..scope() }),
        Request::from(CopyScope { patterns: true, ..scope() }),
        Request::from(CopyScope { single: true, ..scope() }),
        Request::Pull(Pull { scope: scope(), sender: SenderSettings { rate: None, background: true } }),
        Request::Pull(Pull {
            scope: scope(),
            sender: SenderSettings { rate: Some(Rate::from_megabits_per_second(5)), background: false },
        }),
        Request::from(CopyScope { paths: vec![RelPath::root()], names: Some(Arc::default()), ..CopyScope::default() }),
        bench().request,
        Request::Files,
    ] {
        let open = Open::new(request, 77);
        assert_eq!(accept(&wire(&open)), Ok(open));
    }
}

#[test]
fn bytes_after_the_opening_are_left_for_the_session() {
    let mut bytes = wire(&bench());
    let length = bytes.len();
    bytes.extend_from_slice(b"more");
    let (used, open) = Acceptor::new().handle_received(&bytes).unwrap();
    assert_eq!((used, open), (length, Some(bench())));
}

#[test]
fn a_refusal_is_recognised_and_nothing_else_is_taken_for_one() {
    let told = refusal_of(&SessionError::NotFarhaul);
    assert_eq!(refusal_in(&told).map(|abort| abort.code), Some(AbortCode::Protocol));
    assert!(refusal(AbortCode::Other(9), &"x".repeat(100_000)).len() <= MAX_REFUSAL);
    for len in 0..told.len() {
        assert_eq!(refusal_in(&told[..len]), None, "a part");
    }
    assert_eq!(refusal_in(&[&told[..], b"more"].concat()), None);
    assert_eq!(refusal_in(&wire(&bench())), None);
}

#[test]
fn a_newer_caller_learns_the_supported_versions() {
    let error = accept(&wire(&Open { version: 9, ..bench() })).unwrap_err();
    assert_eq!(error, SessionError::Version { wanted: 9, oldest: OLDEST_VERSION, newest: VERSION });
    let told = refusal_of(&error);
    let SessionError::PeerAborted(abort) = received_abort(&told[5..]) else { panic!("no abort") };
    assert_eq!(abort.code, AbortCode::Version);
    assert!(abort.message.contains("supports 2 to 2"), "{abort}");
}

#[test]
fn a_request_of_a_later_version_is_told_so() {
    let mut bytes = wire(&Open::new(Request::Files, 0));
    // The verb stands before the length of its body.
    let at = bytes.len() - 5;
    bytes[at] = 99;
    let error = accept(&bytes).unwrap_err();
    assert_eq!(error, SessionError::UnknownRequest(99));
    let told = refusal_of(&error);
    let SessionError::PeerAborted(abort) = received_abort(&told[5..]) else { panic!("no abort") };
    assert_eq!(abort.code, AbortCode::Version);
    assert!(abort.message.contains("kind 99, as newer versions"), "{abort}");
}

#[test]
fn unknown_capabilities_and_later_fields_are_ignored() {
    let open = Open { capabilities: Capabilities(u64::MAX), ..bench() };
    let mut bytes = wire(&open);
    bytes.extend_from_slice(b"of a later version");
    let body = u32::try_from(bytes.len() - 5).unwrap();
    bytes[1..5].copy_from_slice(&body.to_be_bytes());
    assert_eq!(accept(&bytes).unwrap(), open);
}

#[test]
fn other_protocols_are_recognised_by_their_first_bytes() {
    for bytes in [&b"GET / HTTP/1.1\r\n"[..], b"\x16\x03\x01\x02\x00\x01", b"SSH-2.0-x\r\n", b"\x01\0\0\0\x04abcd"] {
        assert_eq!(accept(bytes), Err(SessionError::NotFarhaul));
    }
}

#[test]
fn lists_that_do_not_fit_one_session_are_refused_here() {
    let pull = |names: &[&str]| CopyScope {
        paths: names.iter().map(|n| RelPath::parse(n.as_bytes()).unwrap()).collect(),
        ..CopyScope::default()
    };
    assert_eq!(pull(&["a/x", "b/x"]).check(), Err(RequestError::SameName));
    assert_eq!(pull(&["a/*", "b/*"]).check(), Err(RequestError::SameName), "they are names");
    let patterns = |names: &[&str]| CopyScope { patterns: true, ..pull(names) };
    assert_eq!(patterns(&["a/*", "b/*"]).check(), Ok(()), "they may match different names");
    assert_eq!(patterns(&["a/x", "b/x"]).check(), Err(RequestError::SameName));
    assert_eq!(pull(&[]).check(), Err(RequestError::Nothing));
    let names: Vec<String> = (0..9000).map(|index| format!("{index:05}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(pull(&names).check(), Err(RequestError::TooLong));
    assert_eq!(pull(&names[..7000]).check(), Ok(()));
    wire(&Open::new(Request::from(pull(&names[..7000])), 0));
}

proptest! {
    #[test]
    fn arbitrary_openings_never_panic(body in proptest::collection::vec(any::<u8>(), 0..80), verb in 0u8..6, proper in any::<bool>()) {
        let mut whole = Vec::new();
        put_frame(&mut whole, FrameKind::Open, |out| {
            if proper {
                out.extend_from_slice(&MAGIC);
                out.extend_from_slice(&[0, 1, 0, 1]);
                out.extend_from_slice(&[0; 16]);
                out.push(verb);
                out.extend_from_slice(&u32::try_from(body.len()).unwrap().to_be_bytes());
            }
            out.extend_from_slice(&body);
        });
        let _ = accept(&whole);
    }
}
