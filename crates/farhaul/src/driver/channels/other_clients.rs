//! Callers of other programs on the port of a blast protocol. Their first bytes tell them from Farhaul programs.

use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use farhaul_proto::begins_hello;

/// Bytes that tell a caller of this protocol from others: the beginning of its hello.
const ENOUGH: usize = 8;
/// Callers that wait for the application. Further ones are reset.
const WAITING: usize = 64;

/// The connection of a caller of another program, with all its bytes still to be received.
pub(crate) type OtherClient = (TcpStream, SocketAddr);

/// Passes them to the application.
#[derive(Clone, Debug)]
pub(super) struct OtherClients(SyncSender<OtherClient>);

/// The first words of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// It has said nothing yet.
    Silent,
    /// It left without a word.
    Gone,
    /// A Farhaul program.
    Ours,
    /// Another program.
    OtherClient,
}

impl OtherClients {
    pub(super) fn new() -> (Self, Receiver<OtherClient>) {
        let (sender, receiver) = sync_channel(WAITING);
        (Self(sender), receiver)
    }

    /// Gives a caller to the application. One that it has no room for is reset.
    pub(super) fn give(&self, stream: TcpStream, from: SocketAddr) {
        // The drop of a connection with unread bytes resets it.
        let _ = self.0.try_send((stream, from));
    }
}

/// Judges a caller by the bytes that `peek` copies.
pub(super) fn judge(peek: impl FnOnce(&mut [u8]) -> Option<usize>) -> Caller {
    let mut first = [0; ENOUGH];
    match peek(&mut first) {
        None => Caller::Silent,
        Some(0) => Caller::Gone,
        // One write brings the whole hello, so its first segment decides.
        Some(len) if begins_hello(&first[..len]) => Caller::Ours,
        Some(_) => Caller::OtherClient,
    }
}

#[cfg(test)]
mod tests {
    use farhaul_wire::blast::{Hello, Tag};

    use super::*;

    fn judged(words: &[u8]) -> Caller {
        judge(|out| {
            let len = words.len().min(out.len());
            out[..len].copy_from_slice(&words[..len]);
            Some(len)
        })
    }

    #[test]
    fn a_hello_is_told_from_the_first_words_of_original_programs() {
        let mut hello = Vec::new();
        Hello { protocol: "tsunami", tag: Tag(7), datagram: 1472, options: &[] }.encode(&mut hello);
        assert_eq!(judged(&hello), Caller::Ours);
        assert_eq!(judged(&hello[..3]), Caller::Ours, "a divided hello");
        let mut named = [0; 256];
        named[..11].copy_from_slice(b"FARHAUL.tar");
        // A revision of Tsunami, a name of RBUDP, a UDP port of SABUL.
        for words in [&0x2006_1025_u32.to_be_bytes()[..], &named, &7000_u32.to_be_bytes(), b"GET / HTTP/1.1"] {
            assert_eq!(judged(words), Caller::OtherClient, "{words:?}");
        }
        assert_eq!([judge(|_| None), judge(|_| Some(0))], [Caller::Silent, Caller::Gone]);
    }
}
