//! The driver with a toy transport: one connection, no reliability, one datagram per write.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;

use farhaul_proto::{
    AddressPair, Batch, Channels, ConnectError, ConnectionId, ConnectionLost, Event, Read, Stats, StreamError, Streams,
    Transmit, Transport,
};
use farhaul_udp::Options;
use farhaul_units::{Duration, Instant};

use super::closing::closing_ports;
use super::*;
use crate::canceller::{CancelFlag, Canceller};
use crate::error::Error;

mod driving_callers;

const ID: ConnectionId = ConnectionId::from_parts(0, 0);
static NEVER: CancelFlag = CancelFlag::new();
/// A datagram on which the toy panics.
const POISON: &[u8] = b"poison";

/// A transport that counts as connected from the first datagram on.
#[derive(Default)]
struct Toy {
    peer: Option<SocketAddr>,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    events: Vec<Event>,
    /// Writes take nothing, as if there were no room.
    full: bool,
    /// Each write fills it until the next datagram.
    takes_turns: bool,
    /// After its release, it stays until the next datagram.
    lingers: bool,
    released: bool,
    /// Disconnects its receiver when the toy is dropped.
    _alive: Option<mpsc::Sender<()>>,
}

impl Transport for Toy {
    fn handle_datagrams(&mut self, _: Instant, _: Instant, from: impl Into<AddressPair>, bytes: &mut [u8], _: usize) {
        assert_ne!(bytes, POISON, "the toy breaks");
        if self.released {
            self.peer = None;
            return;
        }
        if self.peer.replace(from.into().peer).is_none() {
            self.events.push(Event::Accepted(ID));
        }
        self.incoming.extend_from_slice(bytes);
        self.events.push(Event::Readable(ID));
        if self.takes_turns && std::mem::take(&mut self.full) {
            self.events.push(Event::Writable(ID));
        }
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit<'a>(&'a mut self, _: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        if self.outgoing.is_empty() {
            return None;
        }
        std::mem::swap(scratch.cleared(), &mut self.outgoing);
        Some(Transmit::between(self.peer?.into(), usize::MAX, scratch.bytes()))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        if self.events.is_empty() { None } else { Some(self.events.remove(0)) }
    }
}

impl Channels for Toy {}

impl Streams for Toy {
    fn connect(&mut self, _: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        self.peer = Some(peer);
        self.events.push(Event::Connected(ID));
        Ok(ID)
    }

    fn write(&mut self, _: Instant, _: ConnectionId, data: &[u8]) -> Result<usize, StreamError> {
        if self.full {
            return Ok(0);
        }
        self.outgoing.extend_from_slice(data);
        self.full = self.takes_turns;
        Ok(data.len())
    }

    fn writable(&self, _: ConnectionId) -> usize {
        if self.full { 0 } else { usize::MAX }
    }

    fn read(&mut self, _: Instant, _: ConnectionId, out: &mut [u8]) -> Result<Read, StreamError> {
        let len = out.len().min(self.incoming.len());
        out[..len].copy_from_slice(&self.incoming[..len]);
        self.incoming.drain(..len);
        Ok(if len == 0 { Read::Pending } else { Read::Data(len) })
    }

    fn readable(&self, _: ConnectionId) -> usize {
        self.incoming.len()
    }

    fn finish(&mut self, _: Instant, _: ConnectionId) {}

    fn close(&mut self, _: Instant, _: ConnectionId) {}

    fn abort(&mut self, _: Instant, _: ConnectionId) {}

    fn release(&mut self, _: Instant, _: ConnectionId) {
        self.released = self.lingers;
        if !self.lingers {
            self.peer = None;
        }
    }

    fn is_closing(&self, _: ConnectionId) -> bool {
        self.released && self.peer.is_some()
    }

    fn peer(&self, _: ConnectionId) -> Option<SocketAddr> {
        self.peer
    }

    fn stats(&self, _: Instant, _: ConnectionId) -> Option<Stats> {
        None
    }
}

fn driver(toy: Toy) -> Driver<Toy> {
    Driver::start(toy, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Options::default()).unwrap()
}

fn connect(from: &Driver<Toy>, to: &Driver<Toy>) {
    let mut guard = from.lock().unwrap();
    let now = guard.now();
    let id = guard.transport.connect(now, to.local_addr()).unwrap();
    guard.open(id);
}

fn write(driver: &Driver<Toy>, data: &[u8]) {
    let mut guard = driver.lock().unwrap();
    let now = guard.now();
    guard.transport.write(now, ID, data).unwrap();
}

fn read(driver: &Driver<Toy>, timeout: Option<Duration>) -> Result<Vec<u8>, Error> {
    driver.wait_for(WaitPlace::Read(ID), [&NEVER, &NEVER], timeout, |core, now| {
        let mut out = vec![0; 64];
        Ok(match core.transport.read(now, ID, &mut out)? {
            Read::Data(len) => Some(out[..len].to_vec()),
            _ => None,
        })
    })
}

fn accept(driver: &Driver<Toy>) -> Result<ConnectionId, Error> {
    driver.wait_for(WaitPlace::Accept, [&NEVER, &NEVER], None, |core, _| Ok(core.next_accepted()))
}

#[test]
fn a_writer_reaches_a_blocked_reader_on_another_port() {
    let (a, b) = (driver(Toy::default()), driver(Toy::default()));
    b.lock().unwrap().open_acceptor().unwrap();
    connect(&a, &b);
    thread::scope(|scope| {
        let reader = scope.spawn(|| accept(&b).and_then(|_| read(&b, None)));
        write(&a, b"hello");
        assert_eq!(reader.join().unwrap().unwrap(), b"hello");
    });
}

#[test]
fn connections_are_refused_while_the_port_does_not_listen() {
    let mut core = Core::new(Toy::default());
    let knock = |core: &mut Core<Toy>, slot| {
        core.transport.peer = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
        core.transport.events.push(Event::Accepted(ConnectionId::from_parts(slot, 0)));
        core.take_events(Instant::ZERO);
        core.transport.peer.is_some()
    };
    assert!(!knock(&mut core, 0), "the port does not listen");
    core.open_acceptor().unwrap();
    assert!(matches!(core.open_acceptor(), Err(Error::AlreadyListening)));
    assert!(knock(&mut core, 1) && knock(&mut core, 2));
    assert_eq!(core.next_accepted(), Some(ConnectionId::from_parts(1, 0)), "first come, first served");
    core.close_acceptor(Instant::ZERO);
    assert_eq!(core.next_accepted(), None, "a connection not accepted yet is refused");
    assert!(!knock(&mut core, 3));
}

#[test]
fn a_transport_without_channels_leaves_tcp_to_others() {
    // Of a few ports, since a connection of another test may have one in TCP.
    let is_left = (0..4).any(|_| {
        let a = driver(Toy::default());
        a.lock().unwrap().open_acceptor().unwrap();
        assert!(a.lock().unwrap().channel_requests.is_none());
        TcpListener::bind(a.local_addr()).is_ok()
    });
    assert!(is_left);
}

#[test]
fn an_alarm_wakes_a_thread_that_waits_for_a_change() {
    let a = driver(Toy::default());
    a.lock().unwrap().open(ID);
    let mut looks = 0;
    let look = |core: &mut Core<Toy>, now| {
        looks += 1;
        core.look_again_at(now + Duration::from_millis(1), ID);
        Ok((looks == 4).then_some(()))
    };
    a.wait_for(WaitPlace::Change(ID), [&NEVER, &NEVER], None, look).unwrap();
}

#[test]
fn a_connection_that_changed_or_went_has_no_alarm() {
    let mut core = Core::new(Toy::default());
    for end in [Event::Connected(ID), Event::Closed(ID, ConnectionLost::Refused)] {
        core.open(ID);
        core.look_again_at(Instant::from_nanos(7), ID);
        core.look_again_at(Instant::from_nanos(5), ID);
        assert_eq!(core.next_alarm(), Some(Instant::from_nanos(5)));
        core.transport.events.push(end);
        core.take_events(Instant::ZERO);
        assert_eq!(core.next_alarm(), None);
    }
    core.look_again_at(Instant::from_nanos(5), ID);
    core.release(Instant::ZERO, ID);
    assert_eq!(core.next_alarm(), None);
}

#[test]
fn a_connection_that_finishes_in_the_background_outlives_its_handle() {
    for end in [Event::Finished(ID), Event::Closed(ID, ConnectionLost::ClosedByPeer)] {
        let mut core = Core::new(Toy::default());
        core.transport.peer = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
        core.open(ID);
        core.finish_in_background(Instant::ZERO, ID);
        core.transport.incoming = vec![7; 100_000];
        core.release(Instant::ZERO, ID);
        assert!(core.transport.peer.is_some() && !core.all_left(), "it lives on");
        assert!(core.transport.incoming.is_empty(), "nobody reads it any more");
        core.transport.incoming = vec![7; 10];
        core.transport.events.push(Event::Readable(ID));
        core.take_events(Instant::ZERO);
        assert!(core.transport.incoming.is_empty());
        core.transport.events.push(end);
        core.take_events(Instant::ZERO);
        core.note_closed();
        assert!(core.transport.peer.is_none() && core.all_left() && core.status(ID).is_none());
    }
}

#[test]
fn a_handle_that_is_dropped_unfinished_ends_its_connection() {
    let mut core = Core::new(Toy::default());
    core.transport.peer = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
    core.open(ID);
    core.release(Instant::ZERO, ID);
    core.note_closed();
    assert!(core.transport.peer.is_none() && core.all_left());
}

#[test]
fn a_wait_ends_at_its_time_out() {
    let a = driver(Toy::default());
    a.lock().unwrap().open(ID);
    let result = read(&a, Some(Duration::from_millis(1)));
    assert!(matches!(result, Err(Error::TimedOut(_))), "{result:?}");
}

#[test]
fn a_canceller_ends_a_blocked_call() {
    let a = driver(Toy { full: true, ..Toy::default() });
    a.lock().unwrap().open(ID);
    let flag = Arc::new(CancelFlag::new());
    let canceller = Canceller::new(&flag, a.cancellation());
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            a.wait_for(WaitPlace::Write(ID), [&flag, &NEVER], None, |core, now| {
                Ok(Some(core.transport.write(now, ID, b"x")?).filter(|len| *len > 0))
            })
        });
        canceller.cancel();
        assert!(matches!(writer.join().unwrap(), Err(Error::Cancelled)));
    });
}

#[test]
fn a_dropped_handle_leaves_the_close_to_the_driver_thread() {
    let (alive, is_alive) = mpsc::channel();
    let toy = Toy { lingers: true, _alive: Some(alive), ..Toy::default() };
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    // A drop that waited for the close would wait for ever, because the peer answers only afterwards.
    let driver = Driver::start_with(toy, any, Options::default(), Duration::from_secs(3_600)).unwrap();
    let (peer, address) = (UdpSocket::bind(any).unwrap(), driver.local_addr());
    {
        let mut guard = driver.lock().unwrap();
        let now = guard.now();
        let id = guard.transport.connect(now, peer.local_addr().unwrap()).unwrap();
        guard.open(id);
        guard.release(now, id);
    }
    drop(driver);
    assert_eq!(is_alive.try_recv(), Err(mpsc::TryRecvError::Empty), "the transport lives on without a handle");
    peer.send_to(b"good-bye", address).unwrap();
    assert!(is_alive.recv().is_err(), "the thread ends once the peer knows");
}

#[test]
fn a_port_sends_close_packets_until_every_peer_has_them() {
    let mut core =
        Core::new(Toy { lingers: true, peer: Some(SocketAddr::from(([127, 0, 0, 1], 9))), ..Toy::default() });
    core.open(ID);
    core.note_closed();
    assert!(core.all_left());
    core.release(Instant::ZERO, ID);
    core.note_closed();
    assert!(!core.all_left());
    core.transport.peer = None;
    core.note_closed();
    assert!(core.all_left());
}

#[test]
fn wait_idle_ends_after_the_port_is_closed() {
    let driver = driver(Toy::default());
    let address = driver.local_addr();
    // A thread that drops the last handle may be interrupted before it drops its share.
    let share = Arc::clone(&driver.shared);
    drop(driver);
    let gone = share.wait_for(WaitPlace::Accept, [&NEVER, &NEVER], None, |_, _| Ok(None::<()>));
    assert!(matches!(gone, Err(Error::DriverStopped)), "the thread is done");
    assert!(UdpSocket::bind(address).is_err() && closing_ports() > 0, "but the port is open, so the close is not over");
    drop(share);
    wait_idle();
    UdpSocket::bind(address).unwrap();
}

#[test]
fn a_panic_in_the_driver_thread_ends_every_wait_with_an_error() {
    let (a, b) = (driver(Toy::default()), driver(Toy::default()));
    connect(&a, &b);
    b.lock().unwrap().open(ID);
    thread::scope(|scope| {
        let reader = scope.spawn(|| read(&b, None));
        write(&a, POISON);
        assert!(matches!(reader.join().unwrap(), Err(Error::DriverStopped)));
    });
    assert!(b.lock().is_err(), "and it stays an error");
}

#[test]
fn a_panic_in_an_application_thread_ends_every_wait_with_an_error() {
    let a = driver(Toy::default());
    a.lock().unwrap().open(ID);
    thread::scope(|scope| {
        let reader = scope.spawn(|| read(&a, None));
        let culprit = scope.spawn(|| {
            let mut guard = a.lock().unwrap();
            guard.transport.handle_datagrams(Instant::ZERO, Instant::ZERO, a.local_addr(), &mut POISON.to_vec(), 6);
        });
        assert!(culprit.join().is_err());
        assert!(matches!(reader.join().unwrap(), Err(Error::DriverStopped)));
    });
}

#[test]
fn a_task_is_woken_when_its_condition_comes_true() {
    let (a, b) = (driver(Toy::default()), driver(Toy::default()));
    connect(&a, &b);
    b.lock().unwrap().open(ID);
    let (sender, woken) = mpsc::channel();
    let waker = Waker::from(Arc::new(Notify(sender)));
    let mut registration = Registration::default();
    let mut poll = |cx: &Context<'_>| {
        let is_readable = |core: &mut Core<Toy>, _| Ok((core.transport.readable(ID) > 0).then_some(()));
        b.poll_for(WaitPlace::Read(ID), [&NEVER, &NEVER], cx, &mut registration, is_readable)
    };
    assert!(poll(&Context::from_waker(&waker)).is_pending());
    write(&a, b"hello");
    woken.recv().unwrap();
    assert!(matches!(poll(&Context::from_waker(&waker)), Poll::Ready(Ok(()))));
}

#[test]
fn an_abandoned_wait_removes_its_waker() {
    let a = driver(Toy { full: true, ..Toy::default() });
    a.lock().unwrap().open(ID);
    for place in [WaitPlace::Read(ID), WaitPlace::Write(ID), WaitPlace::Change(ID), WaitPlace::Accept] {
        let tasks = || a.lock().unwrap().wait_queue(place).map(|queue| queue.tasks());
        let nothing = |_: &mut Core<Toy>, _| Ok(None::<()>);
        let mut waits: Vec<_> =
            (0..100).map(|_| Box::pin(TaskWait::new(&a, place, [&NEVER, &NEVER], nothing))).collect();
        for round in 1..=2 {
            for wait in &mut waits {
                assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            }
            assert_eq!(tasks(), Some(100), "one for each wait, in round {round} as well");
        }
        waits.truncate(30);
        assert_eq!(tasks(), Some(30));
        waits.clear();
        assert_eq!(tasks(), Some(0));
    }
}

#[test]
fn a_completed_wait_leaves_no_waker() {
    let a = driver(Toy::default());
    a.lock().unwrap().open(ID);
    let mut looks = 0;
    let mut wait = Box::pin(TaskWait::new(&a, WaitPlace::Read(ID), [&NEVER, &NEVER], |_: &mut Core<Toy>, _| {
        looks += 1;
        Ok((looks == 2).then_some(()))
    }));
    assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    assert_eq!(a.lock().unwrap().wait_queue(WaitPlace::Read(ID)).map(|queue| queue.tasks()), Some(0));
}

struct Notify(mpsc::Sender<()>);

impl std::task::Wake for Notify {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}
