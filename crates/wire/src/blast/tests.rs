use super::*;

const FRAMES: [Frame<'static>; 12] = [
    Frame::Inline(b"abc"),
    Frame::Bulk(1 << 40),
    Frame::Forward(&[]),
    Frame::Backward(&[7; 300]),
    Frame::Grant(5),
    Frame::Delivered(u64::MAX),
    Frame::Feedback { datagrams: 1, bytes: 2, clock: 3 },
    Frame::PathOpen,
    Frame::Ping(9),
    Frame::Echo(9),
    Frame::End,
    Frame::Abort(2001),
];

#[test]
fn frames_are_read_back_however_they_are_divided() {
    let mut bytes = Vec::new();
    for frame in FRAMES {
        frame.encode(&mut bytes);
    }
    let mut at = 0;
    for frame in FRAMES {
        let (read, length) = Frame::decode(&bytes[at..]).unwrap().unwrap();
        assert_eq!(read, frame);
        for part in 0..length {
            assert_eq!(Frame::decode(&bytes[at..at + part]), Ok(None), "{frame:?} of {part} bytes");
        }
        at += length;
    }
    assert_eq!(at, bytes.len());
}

#[test]
fn a_frame_that_no_peer_sends_is_refused_before_its_body_is_awaited() {
    assert_eq!(Frame::decode(&[1, 0xFF, 0, 0, 0]), Err(FrameError::TooLong { kind: 1, length: 0xFF00_0000 }));
    assert_eq!(Frame::decode(&[99, 0, 0, 0, 0]), Err(FrameError::Unknown(99)));
    for kind in [2, 5, 6, 7, 8, 9, 10, 11, 12] {
        let length = if matches!(kind, 8 | 11) { 1 } else { 3 };
        let bytes = [kind, 0, 0, 0, length, 0, 0, 0];
        assert_eq!(Frame::decode(&bytes), Err(FrameError::Length { kind, length: u32::from(length) }));
    }
}

#[test]
fn a_hello_names_protocol_tag_and_size() {
    let hello = Hello { protocol: "rbudp", tag: Tag(0x0102_0304_0506_0708), datagram: 1472, options: b"x=1" };
    let mut bytes = Vec::new();
    hello.encode(&mut bytes);
    for part in 0..bytes.len() {
        assert_eq!(Hello::decode(&bytes[..part]), Ok(None), "{part} bytes");
    }
    let whole = bytes.len();
    bytes.push(1);
    assert_eq!(Hello::decode(&bytes), Ok(Some((hello, whole))));
}

#[test]
fn another_program_or_version_is_told_apart_from_its_first_bytes() {
    assert_eq!(Hello::decode(b"SSH-2.0"), Err(HelloError::Foreign));
    assert_eq!(Hello::decode(b"G"), Err(HelloError::Foreign));
    assert_eq!(Hello::decode(b"FARHAUL\x02"), Err(HelloError::Version(2)));
    assert_eq!(Hello::decode(b"FARHAUL\x01\xff"), Err(HelloError::Malformed));
}

#[test]
fn a_tag_stands_before_the_datagram() {
    let datagram = [&Tag(5).bytes()[..], b"data"].concat();
    assert_eq!(Tag::split(&datagram), Ok((Tag(5), &b"data"[..])));
    assert!(Tag::split(&datagram[..7]).is_err());
}
