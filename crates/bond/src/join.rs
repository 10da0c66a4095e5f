//! The connecting side of further flows: how many there are, and how they join.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use farhaul::Stream;
use farhaul_session::{Bonding, Join, JoinAnswer, MAX_FLOWS, Token};
use farhaul_units::Instant;

use crate::shared::Shared;
use crate::stream::BondedStream;
use crate::threads::BusiestThread;

/// Bytes per read of an answer.
const BLOCK: usize = 4 << 10;
/// Most flows of a stream whose user named no number.
const MOST_AUTOMATIC: u8 = 4;
/// Cores up to which such a stream has one flow: the two ends of a copy on one machine keep as many busy.
const FEW_CORES: usize = 2;
/// Time between looks at the busiest thread.
const LOOK: Duration = Duration::from_millis(500);
/// Time for which it is busy before another flow opens: longer than the start of a transfer.
const BUSY_FOR: Duration = Duration::from_secs(2);
/// Share of a core from which a thread counts as busy.
const BUSY: f64 = 0.9;

/// How many flows carry a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flows {
    /// One, and more where the processor of this side is the limit and cores are idle.
    #[default]
    Auto,
    /// So many, up to [`MAX_FLOWS`].
    Exactly(u8),
}

impl FromStr for Flows {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "auto" => Ok(Self::Auto),
            Ok(count @ 1..=MAX_FLOWS) => Ok(Self::Exactly(count)),
            _ => Err(format!("the number of flows is auto, or from 1 to {MAX_FLOWS}")),
        }
    }
}

impl fmt::Display for Flows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Exactly(count) => count.fmt(f),
        }
    }
}

impl Flows {
    /// Whether there are several in any case.
    pub const fn are_several(self) -> bool {
        matches!(self, Self::Exactly(2..))
    }

    /// Most flows that may join, on a machine with so many cores.
    fn most(self, cores: usize) -> u8 {
        match self {
            Self::Exactly(1) => 0,
            Self::Exactly(count) => count,
            Self::Auto if cores <= FEW_CORES => 0,
            Self::Auto => u8::try_from(cores - 1).unwrap_or(MOST_AUTOMATIC).min(MOST_AUTOMATIC),
        }
    }

    /// The offer of a stream with so many flows, which has a new token. `None` for one flow.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn offer(self) -> io::Result<Option<Bonding>> {
        match self.most_here() {
            0 => Ok(None),
            flows => new_offer(flows).map(Some),
        }
    }

    /// The offer of a stream that begins through ssh: `made` by its session, or one with a flow at least.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn offer_beside_ssh(self, made: Option<Bonding>) -> io::Result<Bonding> {
        made.map_or_else(|| new_offer(self.most_here().max(1)), Ok)
    }

    fn most_here(self) -> u8 {
        self.most(thread::available_parallelism().map_or(1, usize::from))
    }
}

fn new_offer(flows: u8) -> io::Result<Bonding> {
    let mut token = [0; 16];
    getrandom::fill(&mut token).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(Bonding { flows, token: Token(token) })
}

/// Opens one more connection to the peer, as the first one was opened. An error is for people.
type Opens = dyn Fn() -> Result<Stream, String> + Send + Sync;
/// Takes a warning for people.
type Warns = dyn Fn(&str) + Send + Sync;

/// Opens further flows of a stream, beside its first connection.
#[derive(Clone)]
pub struct Further {
    opens: Arc<Opens>,
    warns: Arc<Warns>,
}

impl Further {
    /// Flows that `opens` connects to the peer, as the first connection was. A flow that does not join `warns` people.
    pub fn new(
        opens: impl Fn() -> Result<Stream, String> + Send + Sync + 'static,
        warns: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self { opens: Arc::new(opens), warns: Arc::new(warns) }
    }

    /// Opens flows of `stream`, on threads of their own: all at once, or one after the other as the processor needs them. The
    /// calling thread is the one that will drive the stream. A flow that does not join is a warning.
    pub fn open(&self, stream: &BondedStream, flows: Flows, bonding: Bonding) {
        let weak = Arc::downgrade(stream.shared());
        let further = self.clone();
        let begun = match (flows, BusiestThread::of_this()) {
            (Flows::Auto, Some(busiest)) => {
                let thread = thread::Builder::new().name("flows".into());
                thread.spawn(move || further.grow(&weak, bonding, Growth::new(bonding.flows), busiest)).map(drop)
            }
            (Flows::Auto, None) => Ok(()),
            (Flows::Exactly(_), _) => further.join_some(&weak, bonding, 1..=bonding.flows),
        };
        if let Err(error) = begun {
            (self.warns)(&format!("the system gives no thread for further flows: {error}"));
        }
    }

    fn join_some(&self, stream: &Weak<Shared>, bonding: Bonding, indices: impl Iterator<Item = u8>) -> io::Result<()> {
        for index in indices {
            let (further, stream) = (self.clone(), stream.clone());
            let thread = thread::Builder::new().name("join".into());
            thread.spawn(move || further.join(&stream, Join { token: bonding.token, index }))?;
        }
        Ok(())
    }

    /// Opens flows for as long as the busiest thread has no time.
    fn grow(&self, stream: &Weak<Shared>, bonding: Bonding, mut growth: Growth, mut busiest: BusiestThread) {
        let mut last = None;
        loop {
            thread::park_timeout(LOOK);
            let Some(shared) = stream.upgrade().filter(|shared| !shared.is_closing()) else { return };
            let now = shared.clock.now();
            drop(shared);
            let ran = busiest.look();
            let share = last
                .replace(now)
                .map_or(0.0, |last: Instant| ran.as_secs_f64() / (now - last).as_secs_f64().max(f64::MIN_POSITIVE));
            let wanted = growth.look(now, share);
            if self.join_some(stream, bonding, wanted).is_err() {
                return;
            }
        }
    }

    fn join(&self, stream: &Weak<Shared>, join: Join) {
        let joined = (self.opens)().and_then(|flow| join_over(flow, stream, join));
        // A stream that has ended needs no more flows.
        if let Err(why) = joined
            && stream.upgrade().is_some_and(|stream| stream.needs_flows())
        {
            (self.warns)(&format!("the transfer goes on with fewer flows than it could have: {why}"));
        }
    }
}

impl fmt::Debug for Further {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Further").finish_non_exhaustive()
    }
}

impl BondedStream {
    /// Has the stream, which ssh carries, move to the connection that `connect` makes, on a thread of its own, and opens more flows as the
    /// user wants them. The calling thread is the one that will drive the stream. `connect` is called `after` this time, if the stream
    /// lasts. It may give a warning for a stream that still lasts, which `warns` people, or nothing.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn moves(
        &self,
        (flows, bonding, after): (Flows, Bonding, Duration),
        warns: impl Fn(&str) + Send + 'static,
        connect: impl FnOnce() -> Option<Result<(Stream, Further), String>> + Send + 'static,
    ) -> io::Result<()> {
        let (stream, may_grow) = (Arc::downgrade(self.shared()), flows == Flows::Auto && bonding.flows > 1);
        let busiest = may_grow.then(BusiestThread::of_this).flatten();
        let lasts = |stream: &Weak<Shared>| stream.upgrade().is_some_and(|stream| stream.needs_flows());
        thread::Builder::new().name("flows".into()).spawn(move || {
            if !after.is_zero() {
                thread::park_timeout(after);
                if !lasts(&stream) {
                    return;
                }
            }
            let joined = match connect() {
                None => return,
                Some(Err(why)) => Err(why),
                Some(Ok((flow, further))) => join_over(flow, &stream, Join { token: bonding.token, index: 1 })
                    .map(|()| further)
                    .map_err(|why| format!("the data goes through the SSH connection, though UDP answers: {why}")),
            };
            match (joined, flows, busiest) {
                (Err(why), ..) => {
                    if lasts(&stream) {
                        warns(&why);
                    }
                }
                (Ok(further), Flows::Exactly(_), _) => drop(further.join_some(&stream, bonding, 2..=bonding.flows)),
                (Ok(further), Flows::Auto, Some(busiest)) => {
                    further.grow(&stream, bonding, Growth { opened: 1, ..Growth::new(bonding.flows) }, busiest);
                }
                (Ok(_), Flows::Auto, None) => {}
            }
        })?;
        Ok(())
    }
}

/// Has a connection join a stream of the peer, and takes it as a flow of `stream`.
pub(crate) fn join_over(flow: Stream, stream: &Weak<Shared>, join: Join) -> Result<(), String> {
    let joined = answer_to(&flow, join);
    let (Ok(early), Some(stream)) = (&joined, stream.upgrade().filter(|stream| !stream.is_closing())) else {
        flow.close();
        return joined.map(drop);
    };
    stream.attach(flow, early.clone(), false).map_err(|error| error.to_string())
}

/// Asks to join, and waits for the answer. Returns what came after it.
fn answer_to(flow: &Stream, join: Join) -> Result<Vec<u8>, String> {
    flow.send_all(&join.open_frame()).map_err(|error| error.to_string())?;
    let (mut answer, mut block) = (JoinAnswer::default(), [0; BLOCK]);
    loop {
        let len = flow.recv(&mut block).map_err(|error| error.to_string())?;
        if len == 0 {
            return Err("the other side closed a flow".into());
        }
        let (used, has_joined) = answer.handle_received(&block[..len]).map_err(|error| error.to_string())?;
        if has_joined {
            return Ok(block[used..len].to_vec());
        }
    }
}

/// When further flows open.
#[derive(Debug)]
struct Growth {
    /// Flows that have been opened, and most of them.
    opened: u8,
    most: u8,
    busy_since: Option<Instant>,
}

impl Growth {
    const fn new(most: u8) -> Self {
        Self { opened: 0, most, busy_since: None }
    }

    /// The flows to open now, while the busiest thread has this share of a core.
    fn look(&mut self, now: Instant, share: f64) -> std::ops::RangeInclusive<u8> {
        #[expect(clippy::reversed_empty_ranges, reason = "it has no flow")]
        let none = 1..=0;
        if share < BUSY {
            self.busy_since = None;
            return none;
        }
        let since = *self.busy_since.get_or_insert(now);
        if now.saturating_since(since) < BUSY_FOR || self.opened == self.most {
            return none;
        }
        self.busy_since = Some(now);
        // The first connection has nothing to do once flows have joined, so the first step is to two.
        let step = if self.opened == 0 { 2 } else { 1 };
        let before = self.opened;
        self.opened = (before + step).min(self.most);
        before + 1..=self.opened
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_flow_is_the_default_of_small_machines_and_of_a_user_who_says_so() {
        assert_eq!([1, 2, 3, 4, 64].map(|cores| Flows::Auto.most(cores)), [0, 0, 2, 3, 4]);
        assert_eq!([1, 2, 16].map(|count| Flows::Exactly(count).most(1)), [0, 2, 16]);
        assert_eq!(Flows::Exactly(1).offer().unwrap(), None);
        let [one, other] = [0; 2].map(|_| Flows::Exactly(2).offer().unwrap().unwrap());
        assert_ne!(one.token, other.token);
    }

    #[test]
    fn the_number_of_flows_has_bounds() {
        for (text, flows) in [("auto", Flows::Auto), ("1", Flows::Exactly(1)), ("16", Flows::Exactly(16))] {
            assert_eq!((text.parse(), flows.to_string()), (Ok(flows), text.to_owned()));
        }
        for wrong in ["0", "17", "-1", "", "many"] {
            assert!(wrong.parse::<Flows>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn flows_open_one_after_the_other_while_a_thread_has_no_time() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut growth = Growth::new(4);
        let opened = |growth: &mut Growth, from: u64, to: u64, share| -> Vec<u8> {
            (from..to).step_by(500).flat_map(|millis| growth.look(at(millis), share)).collect()
        };
        assert_eq!(opened(&mut growth, 0, 10_000, 0.5), [0; 0]);
        assert_eq!(opened(&mut growth, 10_000, 12_000, 0.95), [0; 0]);
        assert_eq!(opened(&mut growth, 12_000, 13_000, 0.5), [0; 0], "a pause");
        assert_eq!(opened(&mut growth, 13_000, 15_500, 0.95), [1, 2]);
        assert_eq!(opened(&mut growth, 15_500, 60_000, 0.95), [3, 4]);
    }
}
