//! Controllers that send messages to each other.

use std::sync::Mutex;

use farhaul_cc::CustomMessage;

use super::*;

/// Asks the other one at the begin, and answers what it is asked.
struct Talking {
    waiting: VecDeque<CustomMessage>,
    heard: Arc<Mutex<Vec<CustomMessage>>>,
    asks: bool,
}

impl Controller for Talking {
    fn name(&self) -> &str {
        "talking"
    }

    fn on_connect(&mut self, _: &Path, _: &mut Control) {
        if self.asks {
            self.waiting.push_back(CustomMessage { kind: 1, body: b"ping".to_vec() });
        }
    }

    fn on_ack(&mut self, _: &Path, _: &AckEvent, _: &mut Control) {}

    fn on_loss(&mut self, _: &Path, _: &LossEvent<'_>, _: &mut Control) {}

    fn on_custom_message(&mut self, _: &Path, kind: u16, body: &[u8], _: &mut Control) {
        self.heard.lock().unwrap().push(CustomMessage { kind, body: body.to_vec() });
        if kind == 1 {
            self.waiting.push_back(CustomMessage { kind: 2, body: b"pong".to_vec() });
        }
    }

    fn next_message(&mut self) -> Option<CustomMessage> {
        self.waiting.pop_front()
    }

    fn wants_custom_messages(&self) -> bool {
        true
    }
}

fn under(make: impl Fn(u64) -> Box<dyn Controller> + Send + 'static) -> Endpoint {
    endpoint(
        Config { controller: ControllerFactory::new(make), ..Config::default() },
        Entropy { cookie_key: [7; 16], seed: 7 },
    )
}

#[test]
fn controllers_send_messages_both_ways() {
    let heard = [0, 1].map(|_| Arc::new(Mutex::new(Vec::new())));
    let mut pair = Pair::new();
    for end in 0..2 {
        let heard = heard[end].clone();
        pair.ends[end] =
            under(move |_| Box::new(Talking { waiting: VecDeque::new(), heard: heard.clone(), asks: end == 0 }));
    }
    pair.connect(Mode::Stream);
    pair.run_until(5, |_| !heard[0].lock().unwrap().is_empty());
    let heard = heard.map(|heard| heard.lock().unwrap().clone());
    assert_eq!(
        heard,
        [
            vec![CustomMessage { kind: 2, body: b"pong".to_vec() }],
            vec![CustomMessage { kind: 1, body: b"ping".to_vec() }]
        ]
    );
}

/// A program can set a controller only once it knows of the connection; on a busy machine, the peer has long asked by then.
#[test]
fn a_controller_that_comes_late_hears_what_was_asked_before_and_only_the_first_of_it() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let talking = |heard: &Arc<Mutex<Vec<_>>>, asks| Talking { waiting: VecDeque::new(), heard: heard.clone(), asks };
    let mut pair = Pair::new();
    let answers = Arc::new(Mutex::new(Vec::new()));
    let answered = answers.clone();
    pair.ends[0] = under(move |_| Box::new(talking(&answered, true)));
    let [caller, listener] = pair.connect(Mode::Stream);
    for number in 2..100 {
        pair.ends[0].send_custom(caller, 1, &[number]);
    }
    let sent = Arc::new(AtomicU64::new(0));
    let counted = sent.clone();
    pair.keep = Box::new(move |_, datagram| {
        counted.fetch_add(u64::from(datagram[..2] == [0xFF, 0xFF]), Ordering::Relaxed);
        true
    });
    pair.run_until(5, |_| sent.load(Ordering::Relaxed) > 10);
    // What is in flight arrives.
    let arrived = pair.now + Duration::from_secs(1);
    pair.run_until(60, |pair| pair.now >= arrived);
    assert!(pair.ends[1].set_controller(pair.now, listener, Box::new(talking(&heard, false))));
    pair.run_until(1, |_| !answers.lock().unwrap().is_empty());
    let heard = heard.lock().unwrap().clone();
    let bodies: Vec<_> = heard.iter().map(|message| message.body.as_slice()).collect();
    assert_eq!(bodies, [&b"ping"[..], &[2], &[3], &[4]]);
}

/// Always has one more message, of this length.
struct Babbling(usize);

impl Controller for Babbling {
    fn name(&self) -> &str {
        "babbling"
    }

    fn on_ack(&mut self, _: &Path, _: &AckEvent, _: &mut Control) {}

    fn on_loss(&mut self, _: &Path, _: &LossEvent<'_>, _: &mut Control) {}

    fn next_message(&mut self) -> Option<CustomMessage> {
        Some(CustomMessage { kind: 1, body: vec![0; self.0] })
    }

    fn wants_custom_messages(&self) -> bool {
        true
    }
}

#[test]
fn a_controller_that_never_falls_silent_holds_no_data_up_and_sends_nothing_too_long() {
    for (len, fits) in [(100, true), (1_456, true), (1_457, false)] {
        let mut pair = Pair::new();
        pair.ends[0] = under(move |_| Box::new(Babbling(len)));
        let [caller, listener] = pair.connect(Mode::Stream);
        let messages = Arc::new(AtomicU64::new(0));
        let counted = messages.clone();
        pair.keep = Box::new(move |end, datagram| {
            let is_custom = end == 0 && datagram[0] == 0xFF && datagram[1] == 0xFF && datagram.len() == 16 + len;
            counted.fetch_add(u64::from(is_custom), Ordering::Relaxed);
            true
        });
        let data = content(200_000);
        assert!(pair.transfer(caller, listener, &data) == data);
        assert_eq!(messages.load(Ordering::Relaxed) >= 64, fits, "{len}");
    }
}
