//! Every packet type of UDT4, sent and received by a real libudt.
//!
//! The test crafts types 4 and 0x7FFF where neither side sends them. No code in libudt sends the first, and Farhaul's
//! streams have no call for the second.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use farhaul::cc::{AckEvent, Control as Settings, Controller, LossEvent, Path, Spec};
use farhaul::{ConnectOptions, Endpoint, SendOptions};
use farhaul_wire::udt4::Control;

use crate::content::{recv, recv_messages, send, send_messages};
use crate::here::Here;
use crate::libudt::Libudt;
use crate::stream::exchange;
use crate::tap::Direction::{Down, Up};
use crate::tap::{Kind, Tap};

/// Packet kinds that must come from libudt, and go to it.
const TYPES: [Kind; 13] = [
    Kind::Data,
    Kind::Handshake,
    Kind::KeepAlive,
    Kind::LightAck,
    Kind::MediumAck,
    Kind::FullAck,
    Kind::Nak,
    Kind::CongestionWarning,
    Kind::Shutdown,
    Kind::Ack2,
    Kind::DropRequest,
    Kind::ErrorSignal,
    Kind::Custom,
];

/// One data packet in this many is lost, so that there are losses to report.
const LOSE_ONE_IN: u64 = 97;

/// A user-defined packet.
const CUSTOM_KIND: u16 = 7;
const CUSTOM_BODY: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// The kinds from libudt, and those to it.
#[derive(Debug, Default)]
struct Union {
    from: BTreeSet<Kind>,
    to: BTreeSet<Kind>,
}

impl Union {
    /// Adds the kinds at a tap in front of a listening libudt.
    fn add_server(&mut self, tap: &Tap) {
        self.add([tap.kinds(Down), tap.kinds(Up)], tap);
    }

    /// Adds the kinds at a tap behind a connecting libudt.
    fn add_client(&mut self, tap: &Tap) {
        self.add([tap.kinds(Up), tap.kinds(Down)], tap);
    }

    fn add(&mut self, [from, to]: [BTreeSet<Kind>; 2], tap: &Tap) {
        assert_eq!(tap.undecodable(), []);
        self.from.extend(from);
        self.to.extend(to);
    }
}

// Slow: seven libudt processes one after another, of which one has to be idle until both sides have sent a keep-alive.
#[test]
fn libudt_sends_and_receives_every_packet_type() {
    let Some(libudt) = Libudt::find() else { return };
    let mut union = Union::default();
    streams(libudt, &mut union);
    we_close_an_idle_connection(libudt, &mut union);
    messages_that_expire(libudt, &mut union);
    error_signals(libudt, &mut union);
    custom_packets(libudt, &mut union);
    let expected = BTreeSet::from(TYPES);
    // libudt has no code that sends a congestion warning.
    let from: BTreeSet<_> = expected.iter().copied().filter(|kind| *kind != Kind::CongestionWarning).collect();
    assert!(union.from.is_superset(&from), "from libudt: {union:?}");
    assert!(union.to.is_superset(&expected), "to libudt: {union:?}");
}

/// Data, handshakes, acknowledgements in all lengths, their confirmations, loss reports, and libudt's shutdown. Midway,
/// libudt receives a request to slow down.
fn streams(libudt: Libudt, union: &mut Union) {
    let here = Here::new();
    let listener = here.listen().unwrap();
    let tap = Tap::new(here.local_addr(), LOSE_ONE_IN);
    let peer = libudt.connect(tap.address(), "both --bytes 1000000 --expect 5000000");
    let accepted = Here::accept(&listener);
    let warning = thread::scope(|scope| {
        let warning = scope.spawn(|| {
            tap.wait_for(Up, Kind::Data);
            tap.slip_in(Down, &Control::CongestionWarning);
        });
        let (sent, received) = exchange(&accepted, 1, 5_000_000);
        let report = peer.report();
        assert_eq!((report.digest("received_digest"), report.digest("sent_digest")), (sent, received.1));
        warning.join()
    });
    warning.unwrap();
    tap.wait_for(Up, Kind::Shutdown);
    union.add_client(&tap);
    union.to.insert(Kind::CongestionWarning);
}

/// Keep-alives, which libudt sends only to a silent peer, and this side's shutdown.
fn we_close_an_idle_connection(libudt: Libudt, union: &mut Union) {
    let (peer, address) = libudt.listen("recv");
    let tap = Tap::new(address, 0);
    let here = Here::with(Endpoint::builder().plain().keep_alive(Duration::from_secs(1)));
    let stream = here.connect(tap.address()).unwrap();
    let digest = send(&stream, 2, 100_000).unwrap();
    tap.wait_for(Down, Kind::KeepAlive);
    tap.wait_for(Up, Kind::KeepAlive);
    stream.finish().unwrap();
    assert_eq!(peer.report().digest("received_digest"), digest);
    union.add_server(&tap);
}

/// Drop requests, by losses of messages that live for a millisecond.
fn messages_that_expire(libudt: Libudt, union: &mut Union) {
    let short = SendOptions::default().time_to_live(Duration::from_millis(1));
    let (peer, address) = libudt.listen("recv --messages");
    let tap = Tap::new(address, 5);
    let to = Here::new().connect_with(tap.address(), ConnectOptions::messages()).unwrap();
    send_messages(&to, 3, 300, 4_000, short).unwrap();
    to.finish().unwrap();
    let report = peer.report();
    assert_eq!((report.count("damaged"), report.count("duplicated")), (0, 0), "{report:?}");
    assert!(report.count("intact") < 300, "{report:?}");
    union.add_server(&tap);

    let here = Here::new();
    let listener = here.listen_for_messages().unwrap();
    let tap = Tap::new(here.local_addr(), 5);
    let peer = libudt.connect(tap.address(), "send --messages --count 50 --message-size 4000 --ttl 1");
    let messages = recv_messages(&Here::accept_messages(&listener), None);
    // libudt may break its own connection by a drop request that reaches too far. The messages that arrived are whole.
    let (_, reports) = peer.end();
    if let Ok(messages) = messages {
        assert!(messages.order.len() < 50, "{reports:?}");
    }
    union.add_client(&tap);
}

/// Error signals in both directions.
fn error_signals(libudt: Libudt, union: &mut Union) {
    let (peer, address) = libudt.listen("recv --error-signal --expect 20000000");
    let tap = Tap::new(address, 0);
    let to = Here::new().connect(tap.address()).unwrap();
    send(&to, 4, 20_000_000).and_then(|_| to.finish()).unwrap_err();
    peer.end();
    union.add_server(&tap);

    let here = Here::new();
    let listener = here.listen().unwrap();
    let tap = Tap::new(here.local_addr(), 0);
    let peer = libudt.connect(tap.address(), "send --bytes 20000000 --sndbuf 200000");
    let accepted = Here::accept(&listener);
    recv(&accepted, Some(1_000_000)).unwrap();
    tap.slip_in(Down, &Control::ErrorSignal(4000));
    recv(&accepted, None).unwrap();
    let (_, reports) = peer.end();
    assert_eq!(reports[0].count("code"), 7000, "{reports:?}");
    union.add_client(&tap);
    union.to.insert(Kind::ErrorSignal);
}

/// A user-defined packet to libudt, which returns it.
fn custom_packets(libudt: Libudt, union: &mut Union) {
    let came_back = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&came_back);
    let make = move |seed| -> Box<dyn Controller> {
        Box::new(Listening { inner: Spec::default().build(seed), came_back: Arc::clone(&flag) })
    };
    let here = Here::with(Endpoint::builder().plain().controller_with(make));
    let (peer, address) = libudt.listen("both --bytes 100000 --expect 200000 --echo-custom");
    let tap = Tap::new(address, 0);
    let stream = here.connect(tap.address()).unwrap();
    send(&stream, 5, 100_000).unwrap();
    recv(&stream, Some(100_000)).unwrap();
    stream.send_custom(CUSTOM_KIND, &CUSTOM_BODY).unwrap();
    tap.wait_for(Down, Kind::Custom);
    send(&stream, 6, 100_000).unwrap();
    recv(&stream, None).unwrap();
    assert_eq!(peer.report().count("custom_echoed"), 1);
    assert!(came_back.load(Ordering::Relaxed));
    union.add_server(&tap);
    union.to.insert(Kind::Custom);
}

/// The default controller, which also receives user-defined packets.
struct Listening {
    inner: Box<dyn Controller>,
    came_back: Arc<AtomicBool>,
}

impl Controller for Listening {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn on_connect(&mut self, path: &Path, control: &mut Settings) {
        self.inner.on_connect(path, control);
    }

    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Settings) {
        self.inner.on_ack(path, ack, control);
    }

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Settings) {
        self.inner.on_loss(path, loss, control);
    }

    fn on_custom_message(&mut self, _path: &Path, kind: u16, body: &[u8], _control: &mut Settings) {
        assert_eq!((kind, body), (CUSTOM_KIND, &CUSTOM_BODY[..]));
        self.came_back.store(true, Ordering::Relaxed);
    }

    fn wants_custom_messages(&self) -> bool {
        true
    }
}
