//! Controllers of users on real sockets: switched while data is in flight, and wrong ones.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use farhaul::cc::registry::controllers;
use farhaul::cc::{AckEvent, Control, Controller, LossEvent, Path, Spec};
use farhaul::security::{AcceptAll, KeyPair, Security};
use farhaul::{Builder, ConnectionLost, Endpoint, Error};

fn any() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8).collect()
}

#[test]
fn a_stream_arrives_whole_while_its_law_changes_to_every_other() {
    let there = Endpoint::plain(any()).unwrap();
    let listener = there.listen().unwrap();
    let stream = Endpoint::plain(any()).unwrap().connect(there.local_addr()).unwrap();
    let data = content(8_000_000);
    let sender = stream.clone();
    let sent = data.clone();
    let sending = thread::spawn(move || {
        sender.send_all(&sent).unwrap();
        sender.finish().unwrap();
    });
    let (accepted, _) = listener.accept().unwrap();
    let (mut received, mut block) = (Vec::new(), vec![0; 100_000]);
    let mut laws = controllers().into_iter().map(|entry| entry.name).filter(|name| *name != "fixed");
    loop {
        let read = accepted.recv(&mut block).unwrap();
        if read == 0 {
            break;
        }
        received.extend_from_slice(&block[..read]);
        if let Some(law) = laws.next() {
            stream.set_controller_with(law.parse::<Spec>().unwrap().build(1)).unwrap();
        }
    }
    sending.join().unwrap();
    assert!(received == data);
    assert_eq!(laws.next(), None);
}

/// Panics at an acknowledgement once it is armed.
struct Armed(Arc<AtomicBool>);

impl Controller for Armed {
    fn name(&self) -> &str {
        "armed"
    }

    fn on_ack(&mut self, _: &Path, _: &AckEvent, _: &mut Control) {
        assert!(!self.0.load(Ordering::Relaxed), "the panic of this test");
    }

    fn on_loss(&mut self, _: &Path, _: &LossEvent<'_>, _: &mut Control) {}
}

#[test]
fn a_controller_that_panics_ends_its_connection_and_no_other_of_the_port() {
    let secure = || Endpoint::builder().secure(Security::new(KeyPair::generate().unwrap(), AcceptAll));
    ends_its_connection_alone([(); 2].map(|()| Endpoint::builder().plain()));
    ends_its_connection_alone([(); 2].map(|()| secure()));
}

fn ends_its_connection_alone(ends: [Builder; 2]) {
    let [there, here] = ends.map(|builder| builder.bind(any()).unwrap());
    let listener = there.listen().unwrap();
    let [wrong, other] = [(), ()].map(|()| here.connect(there.local_addr()).unwrap());
    let [first, second] = [(), ()].map(|()| listener.accept().unwrap().0);
    let armed = Arc::new(AtomicBool::new(false));
    wrong.set_controller_with(Box::new(Armed(Arc::clone(&armed)))).unwrap();
    armed.store(true, Ordering::Relaxed);
    let error = loop {
        if let Err(error) = wrong.send_all(&[7; 10_000]) {
            break error;
        }
    };
    let Error::Lost(ConnectionLost::ControllerFailed(failure)) = error else { panic!("{error}") };
    assert_eq!(failure.to_string(), "the congestion controller 'armed' failed: it panicked in on_ack");
    let end = loop {
        match first.recv(&mut [0; 10_000]) {
            Ok(0) => panic!("the peer takes it for the end of the stream"),
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(end, Error::Lost(ConnectionLost::Aborted)), "{end}");
    other.send_all(b"lives").unwrap();
    assert_eq!(second.recv(&mut [0; 10]).unwrap(), 5);
}
