//! The controller under test: its flows on a path, and what they may not do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use farhaul_cc::{
    AckEvent, Control, Controller, CustomMessage, DeliveryEvent, KnownPath, LossEvent, Path, ReceivedEvent, SentEvent,
    Spec, TimeoutEvent,
};
use farhaul_netem::{PathSpec, QueueSize};
use farhaul_proto::{Config, ConnectionLost, ControllerFactory, Endpoint, Entropy, Mode, Streams, udt};
use farhaul_units::{Duration, Instant, Rate, SeqNo};

use crate::topology::path::{CALLER, LISTENER, Pair};
use crate::{Simulation, Workload};

/// The longest time without progress.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The longest transfer.
const LIMIT: Duration = Duration::from_secs(600);

/// A fault in words.
pub(super) type Checked<T = ()> = Result<T, String>;

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// One seed, about 20 MB in all. It takes part of a second in an optimised program.
    Short,
    /// Eight seeds and ten times the data.
    Long,
}

/// Makes the controllers under test.
pub(super) struct Subject {
    make: Arc<dyn Fn(u64) -> Box<dyn Controller> + Send + Sync>,
    extent: Extent,
    tally: Arc<Tally>,
}

/// What the controllers under test have done.
#[derive(Debug, Default)]
pub(super) struct Tally {
    calls: AtomicU64,
    messages: AtomicU64,
}

impl Subject {
    pub(super) fn new(make: impl Fn(u64) -> Box<dyn Controller> + Send + Sync + 'static, extent: Extent) -> Self {
        Self { make: Arc::new(make), extent, tally: Arc::default() }
    }

    pub(super) fn seeds(&self) -> std::ops::Range<u64> {
        if self.extent == Extent::Long { 1..9 } else { 1..2 }
    }

    /// A transfer of so many bytes in the short form.
    pub(super) const fn bytes(&self, short: u64) -> u64 {
        match self.extent {
            Extent::Short => short,
            Extent::Long => 10 * short,
        }
    }

    /// A controller under test.
    pub(super) fn controller(&self, seed: u64) -> Box<dyn Controller> {
        Box::new(Observed { inner: (self.make)(seed), tally: Arc::clone(&self.tally) })
    }

    /// The calls of all controllers so far, and the messages that they sent.
    pub(super) fn tally(&self) -> (u64, u64) {
        (self.tally.calls.load(Ordering::Relaxed), self.tally.messages.load(Ordering::Relaxed))
    }

    /// A caller under the controller, and a listener.
    pub(super) fn pair(&self, seed: u64, path: PathSpec) -> Pair<Endpoint> {
        self.pair_from(seed, path, None)
    }

    /// The same, whose first packet has this number.
    pub(super) fn pair_from(&self, seed: u64, path: PathSpec, initial_seq: Option<SeqNo>) -> Pair<Endpoint> {
        let (make, tally) = (Arc::clone(&self.make), Arc::clone(&self.tally));
        let controller =
            move |seed| -> Box<dyn Controller> { Box::new(Observed { inner: make(seed), tally: Arc::clone(&tally) }) };
        pair(seed, path, Config { controller: ControllerFactory::new(controller), initial_seq, ..Config::default() })
    }
}

/// A caller under the law of the registry with this name, and a listener.
pub(super) fn pair_under(law: &str, seed: u64, path: PathSpec) -> Pair<Endpoint> {
    let spec: Spec = law.parse().expect("it is built in");
    pair(seed, path, Config { controller: farhaul_proto::controller_factory(spec), ..Config::default() })
}

fn pair(seed: u64, path: PathSpec, config: Config) -> Pair<Endpoint> {
    let endpoint = |seed, config| udt::endpoint(config, Entropy { cookie_key: [seed as u8; 16], seed });
    let mut listener = endpoint(2 * seed + 1, Config::default());
    listener.listen(Mode::Stream).expect("UDT has streams");
    Pair::new(endpoint(2 * seed, config), listener).path(path).seed(seed)
}

/// A path of this rate and RTT with a queue of one bandwidth-delay product, and some packets at the least.
pub(super) fn path(rate: Rate, round_trip: Duration) -> PathSpec {
    let filled = rate.bits_per_second() as f64 * round_trip.as_secs_f64() / 12_000.0;
    let queue = QueueSize::Packets((filled as u32).max(50));
    PathSpec { rate: Some(rate), delay: round_trip / 2, queue, ..PathSpec::default() }
}

/// Bytes of all the caller's connections that were acknowledged.
pub(super) fn acked(run: &Simulation<Endpoint>) -> Vec<u64> {
    let of = |flow: &crate::Flow| run.transport(CALLER).stats(run.now(), flow.id());
    run.flows(CALLER).iter().map(|flow| of(flow).map_or(0, |stats| stats.totals.bytes_acked)).collect()
}

/// Fails if a connection has ended in disorder.
pub(super) fn is_in_order(run: &Simulation<Endpoint>) -> Checked {
    let ends = run.flows(CALLER).iter().filter_map(|flow| flow.closed);
    for (at, reason) in ends {
        if !matches!(reason, ConnectionLost::ClosedByPeer | ConnectionLost::ClosedLocally) {
            return Err(format!("at {at}, {reason}"));
        }
    }
    Ok(())
}

/// Runs until `end`, or until the transfers are done. Fails if one makes no progress or ends in disorder.
pub(super) fn run_until(run: &mut Simulation<Endpoint>, end: Instant) -> Checked {
    // The first call is an event of the simulation, so there is no flow before it runs.
    let is_done = |run: &Simulation<Endpoint>| {
        !run.flows(CALLER).is_empty() && run.flows(CALLER).iter().all(crate::Flow::is_done)
    };
    while run.now() < end && !is_done(run) {
        let before: u64 = acked(run).iter().sum();
        let since = run.now();
        let progress = |run: &Simulation<Endpoint>| is_done(run) || acked(run).iter().sum::<u64>() > before;
        if !run.run_until_true((since + LONGEST_PAUSE).min(end), progress) && run.now() >= since + LONGEST_PAUSE {
            is_in_order(run)?;
            return Err(format!("nothing was acknowledged from {since} on for {LONGEST_PAUSE:?}"));
        }
        is_in_order(run)?;
    }
    Ok(())
}

/// Runs a transfer to its end, and checks that the data has arrived.
pub(super) fn finish(run: &mut Simulation<Endpoint>) -> Checked {
    let end = run.now() + LIMIT;
    run_until(run, end)?;
    run.run_until_done(LONGEST_PAUSE);
    is_in_order(run)?;
    match run.missing(CALLER, LISTENER).first() {
        Some(missing) => Err(format!("at {}, {missing}", run.now())),
        None => Ok(()),
    }
}

/// Runs a transfer of so many bytes to its end.
pub(super) fn transfer(pair: Pair<Endpoint>, bytes: u64) -> Checked<Simulation<Endpoint>> {
    let mut run = pair.caller(Workload::send(bytes)).start();
    finish(&mut run)?;
    Ok(run)
}

/// The controller under test, whose calls are counted.
struct Observed {
    inner: Box<dyn Controller>,
    tally: Arc<Tally>,
}

impl Observed {
    fn count(&self) {
        self.tally.calls.fetch_add(1, Ordering::Relaxed);
    }
}

impl Controller for Observed {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn recall(&mut self, known: KnownPath) {
        self.inner.recall(known);
    }

    fn remember(&self, path: &Path, limited_by_path: bool) -> Option<KnownPath> {
        self.inner.remember(path, limited_by_path)
    }

    fn on_connect(&mut self, path: &Path, control: &mut Control) {
        self.count();
        self.inner.on_connect(path, control);
    }

    fn on_take_over(&mut self, path: &Path, control: &mut Control) {
        self.count();
        self.inner.on_take_over(path, control);
    }

    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) {
        self.count();
        self.inner.on_ack(path, ack, control);
    }

    fn on_delivery(&mut self, path: &Path, delivery: &DeliveryEvent, control: &mut Control) {
        self.count();
        self.inner.on_delivery(path, delivery, control);
    }

    fn on_restart(&mut self, path: &Path, control: &mut Control) {
        self.count();
        self.inner.on_restart(path, control);
    }

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        self.count();
        self.inner.on_loss(path, loss, control);
    }

    fn on_recovered(&mut self, path: &Path, spurious: bool, control: &mut Control) {
        self.count();
        self.inner.on_recovered(path, spurious, control);
    }

    fn on_timeout(&mut self, path: &Path, timeout: &TimeoutEvent, control: &mut Control) {
        self.count();
        self.inner.on_timeout(path, timeout, control);
    }

    fn on_warning(&mut self, path: &Path, control: &mut Control) -> bool {
        self.count();
        self.inner.on_warning(path, control)
    }

    fn on_syn(&mut self, path: &Path, control: &mut Control) {
        self.count();
        self.inner.on_syn(path, control);
    }

    fn on_sent(&mut self, path: &Path, sent: &SentEvent<'_>, control: &mut Control) {
        self.count();
        self.inner.on_sent(path, sent, control);
    }

    fn on_received(&mut self, path: &Path, received: &ReceivedEvent<'_>, control: &mut Control) {
        self.count();
        self.inner.on_received(path, received, control);
    }

    fn on_custom_message(&mut self, path: &Path, kind: u16, body: &[u8], control: &mut Control) {
        self.count();
        self.inner.on_custom_message(path, kind, body, control);
    }

    fn next_message(&mut self) -> Option<CustomMessage> {
        let message = self.inner.next_message()?;
        self.tally.messages.fetch_add(1, Ordering::Relaxed);
        Some(message)
    }

    fn on_close(&mut self) {
        self.inner.on_close();
    }

    fn wants_packets(&self) -> bool {
        self.inner.wants_packets()
    }

    fn wants_deliveries(&self) -> bool {
        self.inner.wants_deliveries()
    }

    fn wants_custom_messages(&self) -> bool {
        self.inner.wants_custom_messages()
    }
}
