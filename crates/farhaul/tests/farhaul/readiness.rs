//! Readiness without waiting, and wakers that announce it.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Wake, Waker};
use std::time::Duration;

use farhaul::{ConnectOptions, ConnectionLost, Endpoint, Error, Listener, Readiness, SendOptions, Stream, Watch};

/// A waker whose calls a test can wait for.
struct Bell(Sender<()>);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // The test may have ended.
        let _ = self.0.send(());
    }
}

fn bell() -> (Waker, Receiver<()>) {
    let (sender, rings) = channel();
    (Waker::from(Arc::new(Bell(sender))), rings)
}

/// Waits for wake-ups until `is_done`.
fn watch_until(watch: &mut Watch, mut is_done: impl FnMut(Readiness) -> bool) -> Readiness {
    let (waker, rings) = bell();
    loop {
        let readiness = watch.check(&waker).unwrap();
        if is_done(readiness) {
            return readiness;
        }
        rings.recv_timeout(Duration::from_secs(20)).expect("a change is announced");
    }
}

fn pair() -> (Stream, Stream) {
    let listener = Listener::plain("127.0.0.1:0").unwrap();
    let caller = Stream::connect_plain(listener.local_addr()).unwrap();
    (caller, listener.accept().unwrap().0)
}

#[test]
fn attempts_give_nothing_in_place_of_waiting() {
    let listener = Listener::plain("127.0.0.1:0").unwrap();
    assert!(listener.try_accept().unwrap().is_none());
    let endpoint = Endpoint::plain("127.0.0.1:0").unwrap();
    let caller = endpoint.begin_connect(listener.local_addr(), ConnectOptions::stream()).unwrap();
    watch_until(&mut listener.watch(), |now| now.readable);
    let (accepted, _) = listener.try_accept().unwrap().expect("a connection waits");
    assert_eq!(accepted.try_read(&mut [0; 8]).unwrap(), None);
    watch_until(&mut caller.watch(), |now| now.connected && now.writable);
    let mut written = 0;
    while let Some(taken) = caller.try_write(&[1; 100_000]).unwrap() {
        written += taken;
    }
    assert!(written > 0);
    watch_until(&mut accepted.watch(), |now| now.readable);
    let mut read = 0;
    while read < written {
        watch_until(&mut accepted.watch(), |now| now.readable);
        read += accepted.try_read(&mut vec![0; 1 << 20]).unwrap().unwrap();
    }
    watch_until(&mut caller.watch(), |now| now.writable);
}

#[test]
fn messages_are_tried_whole() {
    let hub = Endpoint::plain("127.0.0.1:0").unwrap();
    let listener = hub.listen_for_messages().unwrap();
    let endpoint = Endpoint::plain("127.0.0.1:0").unwrap();
    let caller = endpoint.begin_connect(hub.local_addr(), ConnectOptions::messages()).unwrap();
    watch_until(&mut caller.watch(), |now| now.connected);
    let accepted = listener.accept().unwrap().0;
    assert_eq!(accepted.try_recv(&mut [0; 9]).unwrap(), None);
    assert!(caller.try_send(b"whole", SendOptions::default()).unwrap());
    watch_until(&mut accepted.watch(), |now| now.readable);
    assert_eq!(accepted.try_recv(&mut [0; 9]).unwrap().flatten().map(|received| received.len), Some(5));
    caller.finish().unwrap();
    watch_until(&mut accepted.watch(), |now| now.ended);
    assert_eq!(accepted.try_recv(&mut [0; 9]).unwrap(), Some(None));
}

#[test]
fn readiness_consumes_nothing() {
    let (caller, accepted) = pair();
    caller.send_all(b"stays").unwrap();
    let ready = watch_until(&mut accepted.watch(), |now| now.readable);
    assert!(ready.connected && ready.writable && !ready.ended);
    assert!(accepted.readiness().unwrap().readable);
    assert_eq!(accepted.try_read(&mut [0; 9]).unwrap(), Some(5));
    assert!(!accepted.readiness().unwrap().readable);
}

#[test]
fn the_end_of_a_connection_is_announced() {
    let (caller, accepted) = pair();
    let (waker, rings) = bell();
    let mut watch = accepted.watch();
    assert!(!watch.check(&waker).unwrap().ended);
    caller.finish().unwrap();
    rings.recv_timeout(Duration::from_secs(20)).expect("the end is announced");
    let ended = watch_until(&mut watch, |now| now.ended);
    assert!(ended.readable && ended.writable);
    drop(accepted);
    assert!(watch.check(&waker).is_err());
}

#[test]
fn an_attempt_to_connect_ends_with_its_time_out_and_says_why() {
    // Nobody reads it, and it refuses nothing.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let time = Duration::from_millis(50);
    let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let endpoint = Endpoint::builder().plain().connect_timeout(time).bind(address).unwrap();
    let stream = endpoint.begin_connect(silent.local_addr().unwrap(), ConnectOptions::stream()).unwrap();
    assert_eq!(stream.try_write(b"early").unwrap(), None);
    assert_eq!(stream.try_read(&mut [0; 9]).unwrap(), None);
    let ended = watch_until(&mut stream.watch(), |now| now.ended);
    assert!(!ended.connected);
    assert!(matches!(stream.ending().unwrap(), Some(ConnectionLost::ConnectTimeout(_))));
}

#[test]
fn finishing_gives_up_an_attempt_to_connect() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let endpoint = Endpoint::plain("127.0.0.1:0").unwrap();
    let stream = endpoint.begin_connect(silent.local_addr().unwrap(), ConnectOptions::stream()).unwrap();
    assert!(matches!(stream.finish(), Err(Error::Lost(ConnectionLost::ClosedLocally))));
}

#[test]
fn a_closed_listener_is_announced() {
    let listener = Listener::plain("127.0.0.1:0").unwrap();
    let (waker, rings) = bell();
    let mut watch = listener.watch();
    assert!(!watch.check(&waker).unwrap().readable);
    listener.close();
    rings.recv_timeout(Duration::from_secs(20)).expect("the close is announced");
    assert!(listener.readiness().unwrap().ended && listener.try_accept().is_err());
}

#[test]
fn the_newest_connection_can_be_accepted_first() {
    let listener = Listener::plain("127.0.0.1:0").unwrap().newest_first();
    let callers = [(); 3].map(|()| Stream::connect_plain(listener.local_addr()).unwrap());
    // A caller is connected once the listener has queued it.
    let accepted = callers.iter().map(|_| listener.accept().unwrap().1);
    let expected: Vec<_> = callers.iter().rev().map(|caller| caller.local_addr().port()).collect();
    assert_eq!(accepted.map(|peer| peer.port()).collect::<Vec<_>>(), expected);
}
