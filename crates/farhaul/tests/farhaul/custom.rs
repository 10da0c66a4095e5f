//! User-defined control packets, from an application to the controller at the other end.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::net::SocketAddr;
use std::sync::mpsc::{self, Sender};

use farhaul::cc::{AckEvent, Control, Controller, LossEvent, Path, Spec};
use farhaul::{ConnectionLost, Endpoint, Error};

/// The default controller, which also reports the custom packets it receives.
struct Listening {
    inner: Box<dyn Controller>,
    heard: Sender<(u16, Vec<u8>)>,
}

impl Controller for Listening {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn on_connect(&mut self, path: &Path, control: &mut Control) {
        self.inner.on_connect(path, control);
    }

    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) {
        self.inner.on_ack(path, ack, control);
    }

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        self.inner.on_loss(path, loss, control);
    }

    fn on_custom_message(&mut self, _path: &Path, kind: u16, body: &[u8], _control: &mut Control) {
        self.heard.send((kind, body.to_vec())).unwrap();
    }

    fn wants_custom_messages(&self) -> bool {
        true
    }
}

#[test]
fn a_custom_packet_reaches_the_controller_at_the_other_end() {
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let (heard, what_was_heard) = mpsc::channel();
    let make = move |seed| -> Box<dyn Controller> {
        Box::new(Listening { inner: Spec::default().build(seed), heard: heard.clone() })
    };
    let there = Endpoint::builder().plain().controller_with(make).bind(any).unwrap();
    let listener = there.listen().unwrap();
    let stream = Endpoint::plain(any).unwrap().connect(there.local_addr()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let longest = vec![9; stream.stats().unwrap().payload_size as usize];
    for (kind, body) in [(7, &b"four"[..]), (u16::MAX, &longest[..]), (0, &[])] {
        stream.send_custom(kind, body).unwrap();
        assert_eq!(what_was_heard.recv().unwrap(), (kind, body.to_vec()));
    }
    // A controller that does not request custom packets ignores them.
    accepted.send_custom(1, b"nobody cares").unwrap();
    accepted.send_all(b"data").unwrap();
    assert_eq!(stream.recv(&mut [0; 10]).unwrap(), 4);

    let too_long = vec![0; longest.len() + 1];
    let error = stream.send_custom(7, &too_long).unwrap_err();
    assert!(matches!(error, Error::MessageTooLong { len, .. } if len == too_long.len()), "{error}");
    stream.finish().unwrap();
    assert!(matches!(stream.send_custom(7, b"four"), Err(Error::Finished)));
    accepted.close();
    assert!(matches!(
        accepted.send_custom(7, b"four"),
        Err(Error::Lost(ConnectionLost::ClosedByPeer | ConnectionLost::ClosedLocally))
    ));
}
