//! This side: an endpoint on loopback with bounded waits.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use farhaul::{Builder, Endpoint, Listener, MessageSocket, Stream};

/// After this time every wait of a test is cancelled, so that the test fails and reports where.
const PATIENCE: Duration = Duration::from_secs(45);

/// An endpoint, and the timer that ends its waits.
pub(crate) struct Here {
    endpoint: Endpoint,
    /// Its drop, with the test, stops the timer.
    _alarm: Sender<()>,
}

impl Here {
    /// An endpoint with default settings.
    pub(crate) fn new() -> Self {
        Self::with(Endpoint::builder().plain())
    }

    pub(crate) fn with(builder: Builder) -> Self {
        let endpoint = builder.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let (alarm, stopped) = mpsc::channel();
        let canceller = endpoint.canceller();
        thread::spawn(move || {
            if stopped.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                canceller.cancel();
            }
        });
        Self { endpoint, _alarm: alarm }
    }

    /// The next stream.
    pub(crate) fn accept(listener: &Listener) -> Stream {
        listener.accept().unwrap().0
    }

    /// The next message socket.
    pub(crate) fn accept_messages(listener: &Listener<MessageSocket>) -> MessageSocket {
        listener.accept().unwrap().0
    }
}

impl Deref for Here {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.endpoint
    }
}
