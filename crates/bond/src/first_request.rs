//! The first request of a peer at the accepting side of a stream, which must be complete in time.

use std::time::Duration;

use farhaul::Error as ConnectionError;
use farhaul_session::{Acceptor, Open, SessionError, refusal_of};
use farhaul_udp::Clock;

use crate::first::First;
use crate::stream::BondedStream;

/// Time for the whole first request of a stream, and for the join of a flow.
pub const REQUEST_TIME: Duration = Duration::from_secs(10);
/// Bytes per read of a request.
const BLOCK: usize = 64 << 10;

/// Why a stream has no request.
#[derive(Debug)]
pub enum NoRequest {
    /// It was not complete within this time.
    Late(Duration),
    /// The peer left in the middle of it.
    Left,
    /// The stream broke.
    Lost(ConnectionError),
    /// The peer speaks another protocol.
    Foreign(SessionError),
}

/// Reads the request of a peer, which has this time for all of it. Returns what came after it, too, and the number of all bytes.
/// `None` if the peer left without a word, or a signal stops the program.
///
/// # Errors
/// The peer sent no request in time, or speaks another protocol.
pub fn read(stream: &First, (clock, time): (Clock, Duration)) -> Result<Option<(Open, Vec<u8>, u64)>, NoRequest> {
    let mut acceptor = Acceptor::new();
    let (mut block, mut has_spoken) = (vec![0; BLOCK], false);
    let (due, mut received) = (clock.now() + time, 0);
    loop {
        let left = due.saturating_since(clock.now());
        if left.is_zero() {
            return Err(NoRequest::Late(time));
        }
        stream.set_read_timeout(Some(left));
        let len = match stream.recv(&mut block) {
            Err(ConnectionError::Cancelled) => return Ok(None),
            Ok(0) if !has_spoken => return Ok(None),
            Ok(0) => return Err(NoRequest::Left),
            Ok(len) => len,
            Err(error) => return Err(NoRequest::Lost(error)),
        };
        received += len as u64;
        match acceptor.handle_received(&block[..len]) {
            Ok((_, None)) => has_spoken = true,
            Ok((used, Some(open))) => {
                stream.set_read_timeout(None);
                return Ok(Some((open, block[used..len].to_vec(), received)));
            }
            Err(error) => {
                BondedStream::only(stream.clone()).part(&refusal_of(&error));
                return Err(NoRequest::Foreign(error));
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
    fn reads(time: Duration, pieces: &[&[u8]], pause: Duration) -> Result<Option<Open>, NoRequest> {
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
            let (stream, _) = listener.accept().unwrap();
            let read = read(&stream.clone().into(), (Clock::start(), time));
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
        assert!(matches!(why, NoRequest::Late(_) | NoRequest::Lost(_)), "{why:?}");
        let open = reads(Duration::from_secs(60), &bytes, Duration::ZERO).unwrap().unwrap();
        assert_eq!(open.request, farhaul_session::Request::Push(Push::default()));
    }
}
