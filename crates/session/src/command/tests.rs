//! What each side may say, and when.

use proptest::prelude::*;

use super::*;
use crate::error::{Abort, AbortCode};
use crate::handshake::Acceptor;
use crate::refusal::refusal;

use CommandFrame::{Accept, Closed, Ended, Exited};
use StandardStream::{Error, Input, Output};

fn bytes(stream: StandardStream, content: &[u8]) -> Vec<u8> {
    [&stream.header(content.len())[..], content].concat()
}

fn all(frames: &[CommandFrame]) -> Vec<u8> {
    frames.iter().flat_map(|frame| frame.to_bytes()).collect()
}

/// Everything that a reader hears, with the bytes of each stream in one piece; and its error.
fn heard(mut reader: CommandReader, said: &[u8], piece: usize) -> (Vec<String>, [Vec<u8>; 3], Option<SessionError>) {
    let (mut events, mut streams) = (Vec::new(), [const { Vec::new() }; 3]);
    for mut input in said.chunks(piece) {
        loop {
            match reader.next(&mut input) {
                Ok(None) => break,
                Ok(Some(CommandEvent::Bytes(stream, bytes))) => {
                    assert!(!bytes.is_empty());
                    streams[stream.index()].extend_from_slice(bytes);
                }
                Ok(Some(event)) => events.push(format!("{event:?}")),
                Err(error) => return (events, streams, Some(error)),
            }
        }
        assert!(input.is_empty());
    }
    (events, streams, None)
}

#[test]
fn each_stream_ends_by_itself_and_the_end_of_the_command_comes_last() {
    let exit = CommandExit::Code(23);
    let said = [
        Accept.to_bytes(),
        bytes(Output, b"some"),
        bytes(Error, b"trouble"),
        Ended(Output).to_bytes(),
        Closed(Input).to_bytes(),
        bytes(Error, b" more"),
        Ended(Error).to_bytes(),
        Exited(exit).to_bytes(),
    ]
    .concat();
    for piece in [1, 3, 7, said.len()] {
        let (events, streams, error) = heard(CommandReader::connecting(), &said, piece);
        assert_eq!(events, ["Accepted", "Ended(Output)", "Closed(Input)", "Ended(Error)", "Exited(Code(23))"]);
        assert_eq!(streams, [b"".to_vec(), b"some".to_vec(), b"trouble more".to_vec()]);
        assert_eq!(error, None);
    }
}

#[test]
fn the_accepting_side_hears_the_request_and_the_input() {
    let said =
        [CommandFrame::Open.to_bytes(), bytes(Input, &[7; 100]), all(&[Ended(Input), Closed(Output), Closed(Error)])]
            .concat();
    let (used, open) = Acceptor::new().handle_received(&said).unwrap();
    assert_eq!(open.unwrap().request, Request::Command(CommandRequest { version: COMMAND_VERSION }));
    let (events, streams, error) = heard(CommandReader::accepting(), &said[used..], 11);
    assert_eq!(events, ["Ended(Input)", "Closed(Output)", "Closed(Error)"]);
    assert_eq!((streams[0].len(), error), (100, None));
}

#[test]
fn what_a_side_may_not_say_now_ends_the_session() {
    let out_of_place = |kind| Some(SessionError::PeerMisbehaved(Violation::OutOfPlace(kind)));
    let exit = CommandExit::Code(0);
    for (said, kind) in [
        (all(&[Ended(Output), Ended(Output)]), FrameKind::StreamEnd),
        ([all(&[Ended(Output)]), bytes(Output, b"x")].concat(), FrameKind::Data),
        ([all(&[Ended(Error)]), bytes(Error, b"x")].concat(), FrameKind::Stderr),
        (all(&[Ended(Input)]), FrameKind::StreamEnd),
        (all(&[Closed(Output)]), FrameKind::StreamClosed),
        (all(&[Closed(Input), Closed(Input)]), FrameKind::StreamClosed),
        (all(&[Exited(exit)]), FrameKind::Exit),
        (all(&[Ended(Output), Exited(exit)]), FrameKind::Exit),
        (all(&[Ended(Output), Ended(Error), Exited(exit), Exited(exit)]), FrameKind::Exit),
        (all(&[Ended(Output), Ended(Error), Exited(exit), Closed(Input)]), FrameKind::StreamClosed),
        (all(&[Accept]), FrameKind::Accept),
        (all(&[CommandFrame::Open]), FrameKind::Open),
    ] {
        let said = [Accept.to_bytes(), said].concat();
        assert_eq!(heard(CommandReader::connecting(), &said, 5).2, out_of_place(kind), "{said:?}");
    }
    for (said, kind) in [
        (bytes(Error, b"x"), FrameKind::Stderr),
        (all(&[Ended(Output)]), FrameKind::StreamEnd),
        (all(&[Closed(Input)]), FrameKind::StreamClosed),
        (all(&[Exited(exit)]), FrameKind::Exit),
        (all(&[Ended(Input), Ended(Input)]), FrameKind::StreamEnd),
        ([all(&[Ended(Input)]), bytes(Input, b"x")].concat(), FrameKind::Data),
    ] {
        assert_eq!(heard(CommandReader::accepting(), &said, 5).2, out_of_place(kind), "{said:?}");
    }
}

#[test]
fn nothing_comes_before_the_answer_but_a_refusal() {
    for said in [bytes(Output, b"SSH-2.0-"), all(&[Ended(Output)]), b"SSH-2.0-OpenSSH\r\n".to_vec()] {
        assert_eq!(heard(CommandReader::connecting(), &said, 9).2, Some(SessionError::NotFarhaul));
    }
    let abort = Abort { code: AbortCode::Refused, message: "no command here".to_owned() };
    let said = refusal(abort.code, &abort.message);
    assert_eq!(heard(CommandReader::connecting(), &said, 9).2, Some(SessionError::PeerAborted(abort)));
}

#[test]
fn fields_out_of_their_range_are_refused_and_unknown_extensions_skipped() {
    let malformed = |kind: u8, body: &[u8]| {
        let said = [
            Accept.to_bytes(),
            all(&[Ended(Output), Ended(Error)]),
            vec![kind, 0, 0, 0, body.len() as u8],
            body.to_vec(),
        ];
        heard(CommandReader::connecting(), &said.concat(), 100).2
    };
    for (kind, body) in [
        (FrameKind::StreamEnd, &[3][..]),
        (FrameKind::StreamEnd, &[]),
        (FrameKind::StreamClosed, &[0, 0]),
        (FrameKind::Exit, &[0]),
        (FrameKind::Exit, &[1, 0]),
        (FrameKind::Exit, &[1, 128]),
        (FrameKind::Exit, &[2, 1]),
        (FrameKind::Exit, &[0, 1, 2]),
    ] {
        let error = malformed(kind as u8, body);
        let is_malformed =
            matches!(error, Some(SessionError::PeerMisbehaved(Violation::Malformed { kind: of, .. })) if of == kind);
        assert!(is_malformed, "{kind:?} {body:?}: {error:?}");
    }
    assert_eq!(malformed(0x90, b"of a later version"), None);
    assert_eq!(malformed(0x7f, b""), Some(SessionError::PeerMisbehaved(Violation::UnknownFrame(0x7f))));
    let empty = [Accept.to_bytes(), vec![FrameKind::Stderr as u8, 0, 0, 0, 0]].concat();
    assert!(heard(CommandReader::connecting(), &empty, 100).2.is_some());
}

#[test]
fn only_the_exit_makes_an_end_of_the_connection_good() {
    let mut reader = CommandReader::connecting();
    let said = all(&[Accept, Ended(Output), Ended(Error), Exited(CommandExit::Signal(15))]);
    let mut input = &said[..said.len() - 1];
    while reader.next(&mut input).unwrap().is_some() {}
    assert_eq!(reader.handle_end(), Err(SessionError::PeerLeft));
    let mut input = &said[said.len() - 1..];
    assert_eq!(reader.next(&mut input).unwrap(), Some(CommandEvent::Exited(CommandExit::Signal(15))));
    assert_eq!(reader.handle_end(), Ok(()));
    assert_eq!(CommandReader::accepting().handle_end(), Err(SessionError::PeerLeft));
}

proptest! {
    /// However the transport cuts them, and whatever the lengths of frames.
    #[test]
    fn streams_arrive_whole(frames in prop::collection::vec((any::<bool>(), 1..3_000usize), 0..30), piece in 1..5_000usize) {
        let mut said = Accept.to_bytes();
        let mut sent = [0, 0];
        for (is_error, length) in frames {
            let stream = if is_error { Error } else { Output };
            let content: Vec<u8> = (sent[usize::from(is_error)]..).take(length).map(|index: usize| (index % 251) as u8).collect();
            sent[usize::from(is_error)] += length;
            said.extend(bytes(stream, &content));
        }
        let (_, streams, error) = heard(CommandReader::connecting(), &said, piece);
        prop_assert_eq!(error, None);
        for (stream, sent) in [(&streams[1], sent[0]), (&streams[2], sent[1])] {
            prop_assert_eq!(stream.len(), sent);
            prop_assert!(stream.iter().enumerate().all(|(index, &byte)| usize::from(byte) == index % 251));
        }
    }
}
