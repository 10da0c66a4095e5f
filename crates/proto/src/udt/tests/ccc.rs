//! Every callback, setting and figure of UDT's configurable congestion control (CCC). The table of the book's page on controllers names
//! these tests.

use std::collections::BTreeMap;
use std::sync::Mutex;

use farhaul_cc::{CustomMessage, TimeoutEvent};

use super::*;

/// What a controller heard.
#[derive(Debug, Default)]
struct Heard {
    calls: BTreeMap<&'static str, u32>,
    /// At each call of `on_ack` that is not light.
    acks: Vec<Path>,
    lost: u32,
    /// When time-outs came.
    timeouts: Vec<Instant>,
    messages: Vec<(u16, Vec<u8>)>,
}

/// Keeps what it hears, has these settings, and sends a message to its peer when it begins.
struct Subject {
    settings: fn(&mut Control),
    heard: Arc<Mutex<Heard>>,
    message: Option<CustomMessage>,
}

impl Subject {
    fn note(&self, callback: &'static str) -> std::sync::MutexGuard<'_, Heard> {
        let mut heard = self.heard.lock().unwrap();
        *heard.calls.entry(callback).or_default() += 1;
        heard
    }
}

impl Controller for Subject {
    fn name(&self) -> &str {
        "subject"
    }

    fn on_connect(&mut self, _: &Path, control: &mut Control) {
        drop(self.note("on_connect"));
        (self.settings)(control);
        self.message = Some(CustomMessage { kind: 42, body: b"to the peer".to_vec() });
    }

    fn on_close(&mut self) {
        drop(self.note("on_close"));
    }

    fn on_ack(&mut self, path: &Path, ack: &AckEvent, _: &mut Control) {
        if !ack.light {
            self.note("on_ack").acks.push(*path);
        }
    }

    fn on_loss(&mut self, _: &Path, loss: &LossEvent<'_>, _: &mut Control) {
        self.note("on_loss").lost += loss.newly_lost;
    }

    fn on_timeout(&mut self, path: &Path, _: &TimeoutEvent, _: &mut Control) {
        self.note("on_timeout").timeouts.push(path.now);
    }

    fn on_sent(&mut self, _: &Path, _: &SentEvent<'_>, _: &mut Control) {
        drop(self.note("on_sent"));
    }

    fn on_received(&mut self, _: &Path, _: &ReceivedEvent<'_>, _: &mut Control) {
        drop(self.note("on_received"));
    }

    fn on_custom_message(&mut self, _: &Path, kind: u16, body: &[u8], _: &mut Control) {
        self.note("on_custom_message").messages.push((kind, body.to_vec()));
    }

    fn next_message(&mut self) -> Option<CustomMessage> {
        self.message.take()
    }

    fn wants_packets(&self) -> bool {
        true
    }

    fn wants_custom_messages(&self) -> bool {
        true
    }
}

/// A connected pair whose sender and receiver have these settings.
fn connected(settings: [fn(&mut Control); 2]) -> (Pair, [ConnectionId; 2], [Arc<Mutex<Heard>>; 2]) {
    let heard = [0, 1].map(|_| Arc::new(Mutex::new(Heard::default())));
    let mut pair = Pair::new();
    for end in 0..2 {
        let (settings, heard) = (settings[end], Arc::clone(&heard[end]));
        // That of seed zero has no connection.
        let make = move |seed| -> Box<dyn Controller> {
            let heard = if seed == 0 { Arc::default() } else { Arc::clone(&heard) };
            Box::new(Subject { settings, heard, message: None })
        };
        pair.ends[end] = endpoint(
            Config { controller: ControllerFactory::new(make), ..Config::default() },
            Entropy { cookie_key: [7; 16], seed: 7 },
        );
    }
    let ids = pair.connect(Mode::Stream);
    (pair, ids, heard)
}

/// A packet each millisecond, which no window holds back.
fn steady(control: &mut Control) {
    (control.cwnd, control.send_period) = (None, SendPeriod::from_micros(1_000.0));
}

fn initial(_: &mut Control) {}

/// Loses all packets until the sender's controller has heard of a time-out, with data in flight. Returns how long that took.
fn darkness(pair: &mut Pair, caller: ConnectionId, heard: &Mutex<Heard>) -> Duration {
    pair.ends[0].write(pair.now, caller, &content(20_000)).unwrap();
    pair.keep = Box::new(|_, _| false);
    let begin = pair.now;
    pair.run_until(10, |_| !heard.lock().unwrap().timeouts.is_empty());
    pair.keep = Box::new(|_, _| true);
    heard.lock().unwrap().timeouts[0] - begin
}

#[test]
fn ccc_events_have_callbacks() {
    let (mut pair, [caller, listener], heard) = connected([initial; 2]);
    let mut count = 0;
    pair.keep = Box::new(move |_, _| {
        count += 1;
        count % 50 != 0
    });
    let data = content(1_000_000);
    assert!(pair.transfer(caller, listener, &data) == data);
    darkness(&mut pair, caller, &heard[0]);
    let now = pair.now;
    pair.ends[0].close(now, caller);
    pair.ends[1].close(now, listener);
    pair.run_until(60, |_| heard.iter().all(|heard| heard.lock().unwrap().calls.contains_key("on_close")));
    let [sender, receiver] = heard.map(|heard| heard.lock().unwrap().calls.clone());
    for callback in ["on_connect", "on_close"] {
        assert_eq!((sender[callback], receiver[callback]), (1, 1), "{callback}");
    }
    for callback in ["on_ack", "on_loss", "on_timeout", "on_sent"] {
        assert!(sender[callback] > 0 && !receiver.contains_key(callback), "{callback}: {sender:?} {receiver:?}");
    }
    assert!(receiver["on_received"] > 0 && !sender.contains_key("on_received"));
}

#[test]
fn ccc_acknowledgements_by_time_and_by_count() {
    // The receiver's settings count. Two hundred packets come one by one.
    let acks = |receiver: fn(&mut Control)| {
        let (mut pair, [caller, listener], [heard, _]) = connected([steady, receiver]);
        let data = content(200 * 1_456);
        assert!(pair.transfer(caller, listener, &data) == data);
        std::mem::take(&mut *heard.lock().unwrap()).acks.len()
    };
    let by_default = acks(initial);
    assert!((15..=30).contains(&by_default), "one each 10 ms: {by_default}");
    let by_time = acks(|control| control.ack_period = Some(Duration::from_millis(2)));
    assert!((80..=130).contains(&by_time), "one each 2 ms: {by_time}");
    let by_count = acks(|control| control.full_ack_interval = Some(4));
    assert!((48..=75).contains(&by_count), "one for four packets: {by_count}");
}

#[test]
fn ccc_expiration_time() {
    let [by_default, sooner] = [initial, |control: &mut Control| control.rto = Some(Duration::from_millis(80))].map(
        |settings: fn(&mut Control)| {
            let (mut pair, [caller, listener], heard) = connected([settings, initial]);
            let data = content(100_000);
            assert!(pair.transfer(caller, listener, &data) == data);
            darkness(&mut pair, caller, &heard[0])
        },
    );
    assert!(by_default >= Duration::from_millis(250), "the first is due 300 ms after the last packet: {by_default:?}");
    assert!((Duration::from_millis(60)..Duration::from_millis(200)).contains(&sooner), "{sooner:?}");
}

#[test]
fn ccc_period_and_window() {
    let (mut pair, [caller, listener], _) = connected([steady, initial]);
    let begin = pair.now;
    let data = content(200 * 1_456);
    assert!(pair.transfer(caller, listener, &data) == data);
    assert!(pair.now - begin >= Duration::from_millis(190), "a packet each millisecond: {:?}", pair.now - begin);
    let (mut pair, [caller, listener], heard) = connected([|control| control.cwnd = Some(7.0), initial]);
    assert!(pair.transfer(caller, listener, &data) == data);
    let most = heard[0].lock().unwrap().acks.iter().map(|path| path.in_flight).max();
    assert!(most.is_some_and(|most| most <= 7), "{most:?}");
}

#[test]
fn ccc_messages_go_both_ways() {
    let (mut pair, _, heard) = connected([initial; 2]);
    pair.run_until(5, |_| heard.iter().all(|heard| !heard.lock().unwrap().messages.is_empty()));
    for heard in heard {
        assert_eq!(heard.lock().unwrap().messages, [(42, b"to the peer".to_vec())]);
    }
}

#[test]
fn ccc_figures_of_the_path() {
    let (mut pair, [caller, listener], heard) = connected([|control| control.cwnd = Some(100.0), initial]);
    let mut count = 0;
    pair.keep = Box::new(move |_, _| {
        count += 1;
        count % 100 != 0
    });
    let data = content(2_000_000);
    assert!(pair.transfer(caller, listener, &data) == data);
    let stats = pair.ends[0].stats(pair.now, caller).unwrap();
    let heard = heard[0].lock().unwrap();
    let path = heard.acks.last().unwrap();
    assert_eq!((path.mss, path.packets_sent <= stats.totals.packets_sent), (1_500, true));
    assert!(path.rtt >= 2 * DELAY && path.rtt < 4 * DELAY && path.min_rtt.is_some(), "{path:?}");
    assert!(path.arrival_rate.is_some() && path.delivery_rate.is_some(), "{path:?}");
    assert!(path.max_window >= path.flow_window && path.in_flight <= 100, "{path:?}");
    let capacities = heard.acks.iter().filter(|path| path.capacity.is_some()).count();
    assert!(capacities > 0, "probe pairs give one");
    assert!(heard.acks.is_sorted_by_key(|path| path.now) && heard.acks.is_sorted_by_key(|path| path.packets_sent));
    // Control packets are counted outside of the controller.
    let totals = stats.totals;
    assert!(totals.acks_received >= heard.acks.len() as u64);
    assert!(totals.naks_received > 0 && totals.packets_retransmitted > 0 && heard.lost > 0);
}
