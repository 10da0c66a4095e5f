//! The request of a caller: its first message, which must be complete in time.

use std::net::SocketAddr;
use std::time::Duration;

use farhaul::Error as ConnectionError;
use farhaul_session::{Acceptor, Open, refusal_of};
use farhaul_udp::Clock;

use super::listener::part;
use crate::bond::First;
use crate::text;

/// Bytes per read of a request.
const BLOCK: usize = 64 << 10;

/// Reads the request of a peer, which has this time for all of it. Returns what came after it, too, and the number of all bytes.
/// `None` if the peer left without a word, or a signal stops the program.
///
/// # Errors
/// The peer sent no request in time, or speaks another protocol. In words for the owner of the server.
pub(crate) fn read(
    stream: &First,
    peer: SocketAddr,
    (clock, time): (Clock, Duration),
) -> Result<Option<(Open, Vec<u8>, u64)>, String> {
    let mut acceptor = Acceptor::new();
    let (mut block, mut has_spoken) = (vec![0; BLOCK], false);
    let (due, mut received) = (clock.now() + time, 0);
    loop {
        let left = due.saturating_since(clock.now());
        if left.is_zero() {
            return Err(format!("{peer} connected and sent no whole request within {}", text::time(time)));
        }
        stream.set_read_timeout(Some(left));
        let len = match stream.recv(&mut block) {
            Err(ConnectionError::Cancelled) => return Ok(None),
            Ok(0) if !has_spoken => return Ok(None),
            Ok(0) => return Err(format!("{peer} left before it sent a request")),
            Ok(len) => len,
            Err(error) => return Err(format!("{peer} connected and sent no request: {error}")),
        };
        received += len as u64;
        match acceptor.handle_received(&block[..len]) {
            Ok((_, None)) => has_spoken = true,
            Ok((used, Some(open))) => {
                stream.set_read_timeout(None);
                return Ok(Some((open, block[used..len].to_vec(), received)));
            }
            Err(error) => {
                part(stream, &refusal_of(&error));
                return Err(format!("{peer}: {error}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use farhaul::Endpoint;
    use farhaul_session::{FileSender, MemorySource, Push};

    use super::*;

    /// What a listener reads within this time from a caller that sends these pieces, each after a pause.
    fn reads(time: Duration, pieces: &[&[u8]], pause: Duration) -> Result<Option<Open>, String> {
        let listener = Endpoint::plain("127.0.0.1:0").unwrap().listen().unwrap();
        let to = listener.local_addr();
        thread::scope(|scope| {
            scope.spawn(move || {
                let caller = Endpoint::plain("127.0.0.1:0").unwrap().connect(to).unwrap();
                for piece in pieces {
                    // The listener may have closed.
                    if caller.send(piece).is_err() {
                        return;
                    }
                    thread::park_timeout(pause);
                }
                let _ = caller.finish();
            });
            let (stream, peer) = listener.accept().unwrap();
            let read = read(&stream.clone().into(), peer, (Clock::start(), time));
            stream.close();
            read.map(|read| read.map(|(open, ..)| open))
        })
    }

    #[test]
    fn b22_a_caller_that_sends_a_byte_now_and_then_has_no_more_time_than_one_that_sends_nothing() {
        let request = FileSender::push(Push::default()).poll_write(&mut MemorySource::default()).to_vec();
        let bytes: Vec<&[u8]> = request.chunks(1).collect();
        // The whole request would take ten times as long, and every byte comes within the time.
        let pause = Duration::from_millis(20);
        let time = pause * u32::try_from(bytes.len()).unwrap() / 10;
        let why = reads(time, &bytes, pause).unwrap_err();
        assert!(why.contains("no whole request within") || why.contains("no request"), "{why}");
        assert!(!why.contains("left before"), "{why}");
        let open = reads(Duration::from_secs(60), &bytes, Duration::ZERO).unwrap().unwrap();
        assert_eq!(open.request, farhaul_session::Request::Push(Push::default()));
    }
}
