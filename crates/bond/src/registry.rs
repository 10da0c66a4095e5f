//! The accepting side of further flows: whose stream a flow may join.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use farhaul::security::PublicKey;
use farhaul::{Listener, Stream};
use farhaul_session::{AbortCode, BLOCK_HEADER, Bonding, Join, Record, Request, Token, join_accepted, refusal};
use farhaul_udp::Clock;

use crate::first_request::{self, REQUEST_TIME};
use crate::flow::lock;
use crate::shared::Shared;
use crate::stream::BondedStream;

/// One refusal for every reason, so that nobody learns which tokens exist.
const NO_STREAM: &str = "no stream here waits for this flow";

/// A flow waits this long for the first request of its stream, which it may overtake: a few repetitions on a long path.
const OVERTAKING: Duration = Duration::from_secs(2);

/// Streams that flows may join. Clones share everything.
#[derive(Clone, Default)]
pub struct Registry(Arc<Streams>);

#[derive(Default)]
struct Streams {
    offered: Mutex<BTreeMap<Token, Offered>>,
    /// A stream was offered.
    more: Condvar,
}

struct Offered {
    stream: Weak<Shared>,
    peer: Peer,
    bonding: Bonding,
    /// A bit for each flow that has come.
    came: u32,
}

/// Who may join: the peer of the first connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Key(PublicKey),
    /// A plain connection proves nothing but its address.
    Address(IpAddr),
}

impl Peer {
    fn of(stream: &Stream) -> Option<Self> {
        if stream.is_plain().ok()? {
            return Some(Self::Address(stream.peer_addr().ip().to_canonical()));
        }
        stream.protection().ok()??.peer_key.map(Self::Key)
    }
}

impl Registry {
    /// Lets flows join a stream, as its request offers. Returns whether they can: not with a token that another stream has.
    pub fn offer(&self, stream: &BondedStream, bonding: Bonding) -> bool {
        stream.connection().and_then(Peer::of).is_some_and(|peer| self.offer_peer(stream, bonding, peer))
    }

    /// The same for flows with this key.
    pub fn offer_to(&self, stream: &BondedStream, bonding: Bonding, key: PublicKey) -> bool {
        self.offer_peer(stream, bonding, Peer::Key(key))
    }

    fn offer_peer(&self, stream: &BondedStream, bonding: Bonding, peer: Peer) -> bool {
        let mut offered = lock(&self.0.offered);
        offered.retain(|_, offered| offered.stream.strong_count() > 0);
        if offered.contains_key(&bonding.token) {
            return false;
        }
        offered.insert(bonding.token, Offered { stream: Arc::downgrade(stream.shared()), peer, bonding, came: 0 });
        self.0.more.notify_all();
        true
    }

    /// Whether a stream waits for a flow.
    pub fn expects_flows(&self) -> bool {
        let waits = |offered: &Offered| {
            let came = offered.came.count_ones();
            offered.stream.strong_count() > 0 && came < u32::from(offered.bonding.flows)
        };
        lock(&self.0.offered).values().any(waits)
    }

    /// Has flows join from this listener, which is for nothing else, until it is closed or cancelled. On threads of its own.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn serve(self, listener: Listener, clock: Clock) -> io::Result<()> {
        thread::Builder::new().name("flows".into()).spawn(move || {
            while let Ok((flow, _)) = listener.accept() {
                let its = self.clone();
                // A peer without an answer tries no more.
                let _ = thread::Builder::new().name("join".into()).spawn(move || {
                    let first = flow.clone().into();
                    if let Ok(Some((open, early, _))) = first_request::read(&first, (clock, REQUEST_TIME)) {
                        match open.request {
                            Request::Join(join) => its.join(flow, join, early, REQUEST_TIME),
                            _ => BondedStream::from(flow).part(&refusal(AbortCode::Busy, NO_STREAM)),
                        }
                    }
                });
            }
        })?;
        Ok(())
    }

    /// Has a connection join as a flow, within this time, or refuses it. `early` bytes came after its request.
    pub fn join(&self, flow: Stream, join: Join, early: Vec<u8>, time: Duration) {
        let Some(stream) = self.take(&flow, join) else {
            return BondedStream::from(flow).part(&refusal(AbortCode::Refused, NO_STREAM));
        };
        flow.set_read_timeout(Some(time));
        flow.set_write_timeout(Some(time));
        let ready = flow.send_all(&join_accepted()).ok().and_then(|()| ready(&flow, early));
        match ready.zip(stream.upgrade()) {
            // A stream that has ended closes it.
            Some((early, stream)) => drop(stream.attach(flow, early, true)),
            None => flow.close(),
        }
    }

    /// The stream that this flow may join, for the first time.
    fn take(&self, flow: &Stream, join: Join) -> Option<Weak<Shared>> {
        let peer = Peer::of(flow)?;
        let is_unknown = |offered: &mut BTreeMap<Token, Offered>| !offered.contains_key(&join.token);
        let offered = lock(&self.0.offered);
        let waited = self.0.more.wait_timeout_while(offered, OVERTAKING, is_unknown);
        let mut offered = waited.unwrap_or_else(PoisonError::into_inner).0;
        let offered = offered.get_mut(&join.token).filter(|offered| offered.peer == peer)?;
        let bit = 1u32.checked_shl(u32::from(join.index)).filter(|bit| offered.came & bit == 0)?;
        if !offered.bonding.admits(join.index) || offered.stream.strong_count() == 0 {
            return None;
        }
        offered.came |= bit;
        Some(offered.stream.clone())
    }
}

/// Waits until the peer knows that its flow has joined. Returns what came after that.
fn ready(flow: &Stream, mut early: Vec<u8>) -> Option<Vec<u8>> {
    let mut block = [0; BLOCK_HEADER];
    while early.len() < BLOCK_HEADER {
        let len = flow.recv(&mut block).ok().filter(|len| *len > 0)?;
        early.extend_from_slice(&block[..len]);
    }
    let header = early.first_chunk().copied()?;
    early.drain(..BLOCK_HEADER);
    matches!(Record::from_bytes(header), Ok(Record::Ready)).then_some(early)
}
