//! Serving clients: one thread for each session, and a bound on their number.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use farhaul::OtherClients;
use farhaul_session::RelPath;
use farhaul_units::Instant;

use super::line::Line;
use super::{Failure, Stop};
use farhaul_disk::{Directory, ServedFile};
use farhaul_keys::Who;

/// How long a client may ask for nothing. People sit at the original's prompt, but a place must not be lost for ever.
pub(super) const IDLE: Duration = Duration::from_secs(300);

/// A file that a server has given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Its name, as the client asked for it.
    pub name: Vec<u8>,
    /// Its bytes.
    pub size: u64,
    /// Datagrams, repetitions included.
    pub sent: u64,
    /// Datagrams that were repeated.
    pub retransmitted: u64,
    /// From the grant to the client's stop or last report.
    pub time: Duration,
}

/// The file that a client gets at present.
pub(super) struct OpenFile {
    name: Vec<u8>,
    pub(super) file: ServedFile,
    since: Instant,
}

impl OpenFile {
    /// Opens the file that a client asks for.
    pub(super) fn open(root: &Directory, name: &[u8], now: Instant) -> Result<Self, Failure> {
        let path =
            RelPath::parse(name).map_err(|error| Failure::Name { name: name.to_vec(), reason: error.to_string() })?;
        Ok(Self { name: name.to_vec(), file: ServedFile::open(root, &path)?, since: now })
    }

    /// It was given in this many datagrams.
    pub(super) fn given(self, now: Instant, sent: u64, retransmitted: u64) -> Given {
        Given { name: self.name, size: self.file.size(), sent, retransmitted, time: now - self.since }
    }
}

/// An event of a server. Sessions are numbered from 1.
#[derive(Debug)]
#[non_exhaustive]
pub enum News<'a> {
    /// A session has begun.
    Begun,
    /// No place is free for this client.
    Busy,
    /// The client asked for a file that is not given.
    Refused {
        /// Its name.
        name: &'a [u8],
        /// The reason.
        why: &'a Failure,
    },
    /// A file was given. Whether the client has all of it, only the client knows.
    Given(&'a Given),
    /// The session is over.
    Over(&'a Result<(), Failure>),
}

/// Hears the news of a server, on the threads of its sessions.
pub trait Watch: Sync {
    /// News of a session, which is 0 for a client without a place.
    fn hear(&self, session: u64, peer: SocketAddr, news: News<'_>);
}

/// Serves the clients of an endpoint until a stop, at most `most` at a time. The endpoint hangs up when its listener is closed.
pub(super) fn serve_all(
    clients: &OtherClients,
    most: usize,
    stop: &Stop,
    watch: &dyn Watch,
    session: impl Fn(Line, &dyn Fn(News<'_>)) -> Result<(), Failure> + Sync,
) -> Result<(), Failure> {
    let (places, session) = (&Places::default(), &session);
    let mut number = 0;
    thread::scope(|scope| {
        while let Some((stream, peer)) = clients.accept().filter(|_| !stop.is_stopped()) {
            number += 1;
            let session_number = number;
            let Some(is_idle) = places.take(most, session_number, &stream, peer) else {
                watch.hear(0, peer, News::Busy);
                continue;
            };
            let begun = thread::Builder::new().name("original".into()).spawn_scoped(scope, move || {
                let _place = Taken(places, session_number);
                let tell = |news: News<'_>| watch.hear(session_number, peer, news);
                tell(News::Begun);
                let result = Line::accepted(stream, peer, stop, is_idle).and_then(|line| session(line, &tell));
                tell(News::Over(&result));
            });
            if begun.is_err() {
                places.leave(session_number);
                watch.hear(0, peer, News::Busy);
            }
        }
    });
    Err(Failure::Stopped)
}

/// The places of a server, oldest first.
#[derive(Debug, Default)]
struct Places(Mutex<Vec<Place>>);

#[derive(Debug)]
struct Place {
    session: u64,
    network: Who,
    /// A handle to hang up.
    stream: TcpStream,
    /// Whether its client has asked for nothing yet, or has all of it.
    is_idle: Arc<AtomicBool>,
}

impl Places {
    /// Takes a place. Without a free one, the oldest idle client of the network with the most places makes room, if the new
    /// client's network has fewer. So no network keeps out or drives out the others by connections alone.
    fn take(&self, most: usize, session: u64, stream: &TcpStream, peer: SocketAddr) -> Option<Arc<AtomicBool>> {
        let (network, stream) = (Who::unlisted(peer), stream.try_clone().ok()?);
        let mut all = self.all();
        if all.len() >= most {
            let of = |network: Who| all.iter().filter(|place| place.network == network).count();
            let largest = all.iter().map(|place| of(place.network)).max().filter(|&count| count > of(network))?;
            let leaves = |place: &Place| place.is_idle.load(Ordering::Acquire) && of(place.network) == largest;
            let at = all.iter().position(leaves)?;
            // Its thread sees the end of the connection.
            let _ = all.remove(at).stream.shutdown(Shutdown::Both);
        }
        let is_idle = Arc::new(AtomicBool::new(true));
        all.push(Place { session, network, stream, is_idle: Arc::clone(&is_idle) });
        Some(is_idle)
    }

    fn leave(&self, session: u64) {
        self.all().retain(|place| place.session != session);
    }

    fn all(&self) -> MutexGuard<'_, Vec<Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place that is free again after the session, even if its thread panics.
struct Taken<'a>(&'a Places, u64);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn idle_clients_of_one_network_make_room_for_those_of_others() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let connect = || connect(&listener);
        let [one, other] = [at("192.0.2.1:1"), at("192.0.3.1:1")];
        let places = Places::default();
        let mut held = Vec::new();
        for session in 0..4 {
            let (client, stream) = connect();
            let is_idle = places.take(4, session, &stream, one).unwrap();
            held.push((client, stream, is_idle));
        }
        let (_client, stream) = connect();
        assert!(places.take(4, 4, &stream, one).is_none(), "it has all of them");
        held[0].2.store(false, Ordering::Release);
        assert!(places.take(4, 5, &stream, other).is_some());
        let sessions: Vec<u64> = places.all().iter().map(|place| place.session).collect();
        assert_eq!(sessions, [0, 2, 3, 5], "the oldest one that is idle left");
        held.iter().for_each(|(.., is_idle)| is_idle.store(false, Ordering::Release));
        assert!(places.take(4, 6, &stream, other).is_none(), "nobody is idle but its own");
        places.leave(0);
        assert!(places.take(4, 7, &stream, other).is_some());
    }
    #[test]
    fn many_addresses_of_one_network_drive_out_nobody_else() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (places, mut held) = (Places::default(), Vec::new());
        for (session, (from, has_place)) in [
            ("[2001:db8:1::1]:1", true),
            ("[2001:db8:2::1]:1", true),
            ("[2001:db8:3::1]:1", true),
            ("[2001:db8:3::2]:1", false),
            ("[2001:db8:3:1::1]:1", false),
        ]
        .into_iter()
        .enumerate()
        {
            held.push(connect(&listener));
            assert_eq!(places.take(2, session as u64, &held[session].1, at(from)).is_some(), has_place, "{from}");
        }
    }

    fn connect(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn at(address: &str) -> SocketAddr {
        address.parse().unwrap()
    }
}
