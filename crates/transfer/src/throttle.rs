//! The cap on the rate of what runs, and its pauses, changed from another thread.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhaul::{Error as ConnectionError, Stats};
use farhaul_bond::BondedStream;
use farhaul_session::{SenderRequest, SenderSettings};
use farhaul_units::Rate;

/// The congestion controller that gives way to all others.
pub(crate) const SCAVENGER: &str = "ledbat";
/// A pause looks for a cancellation at this interval.
const LOOK: Duration = Duration::from_millis(50);

/// Caps and pauses the copies and servers that were given it. Clones share everything.
///
/// A cap holds for each connection by itself, as [`Settings::rate`](crate::Settings::rate), and replaces that. Where the peer sends, it
/// is asked to keep the cap.
#[derive(Clone, Default)]
pub struct Throttle(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<ThrottleState>,
    resumed: Condvar,
}

#[derive(Default)]
struct ThrottleState {
    /// The cap that was set last; `None` if none was set.
    cap: Option<Option<Rate>>,
    is_paused: bool,
    /// The connections of sessions, by the number of each.
    sessions: BTreeMap<u64, Connected>,
    next: u64,
    data_path: DataPath,
}

/// Where the data moves.
#[derive(Default)]
enum DataPath {
    /// Through connections of this program.
    #[default]
    Here,
    /// Through another program, which is told of each change.
    Elsewhere(Tell),
    /// Where no change gets, for this reason.
    Nowhere(String),
}

/// Tells another program of a change. An error is for the user.
type Tell = Box<dyn Fn(Change) -> Result<(), String> + Send>;

/// A change of a throttle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The cap; `None` for no cap.
    Rate(Option<Rate>),
    /// The begin or the end of a pause.
    Paused(bool),
}

/// Why a throttle did not change what runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ThrottleError {
    /// A cap of zero, or a connection whose protocol cannot change its cap.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The data does not pass this program, and the program that it passes cannot be told.
    #[error("{0}")]
    OutOfReach(String),
}

struct Connected {
    stream: BondedStream,
    /// `None` if the peer sends the data.
    caps: Option<Caps>,
    /// The peer requested it.
    is_background: bool,
}

/// The caps on one sending connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caps {
    /// This side's, which its user may change.
    own: Option<Rate>,
    /// That of this side's rules, which stays.
    rule: Option<Rate>,
    /// The one that the peer requested.
    requested: Option<Rate>,
    /// The peer speaks for the user of this side as well, so its request replaces this side's cap.
    peer_decides: bool,
}

/// What a sender obeys beside its throttle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Obedience {
    /// A cap that nobody may raise.
    pub(crate) rule: Option<Rate>,
    /// What the peer requested as the session began.
    pub(crate) requested: SenderSettings,
    /// The peer's requests replace the cap of this side. Otherwise they only lower it.
    pub(crate) peer_decides: bool,
}

impl Caps {
    /// The effective cap.
    fn effective(self) -> Option<Rate> {
        let own = if self.peer_decides && self.requested.is_some() { None } else { self.own };
        [own, self.rule, self.requested].into_iter().flatten().min()
    }
}

impl Throttle {
    /// Caps each connection from now on, those to come included; `None` takes the cap away.
    ///
    /// # Errors
    /// A cap of zero, or the protocol of a connection cannot change its cap. The others have it. Or the data does not pass this
    /// program, and nothing has changed.
    pub fn set_rate(&self, cap: Option<Rate>) -> Result<(), ThrottleError> {
        if cap == Some(Rate::ZERO) {
            return Err(ConnectionError::InvalidOption { option: "max_rate", range: "above zero" }.into());
        }
        let mut state = self.state();
        state.data_path.tell(Change::Rate(cap))?;
        state.cap = Some(cap);
        let mut result = Ok(());
        for session in state.sessions.values_mut() {
            if let Some(caps) = &mut session.caps {
                caps.own = cap;
            }
            result = result.and(session.apply());
        }
        Ok(result?)
    }

    /// The cap that was set last; `None` if none was set.
    pub fn rate(&self) -> Option<Option<Rate>> {
        self.state().cap
    }

    /// Moves no more data until [`resume`](Self::resume). Connections stay open. A server ends sessions that stay idle for long.
    ///
    /// # Errors
    /// The data does not pass this program.
    pub fn pause(&self) -> Result<(), ThrottleError> {
        let mut state = self.state();
        state.data_path.tell(Change::Paused(true))?;
        state.is_paused = true;
        Ok(())
    }

    /// Ends a pause.
    ///
    /// # Errors
    /// The data does not pass this program.
    pub fn resume(&self) -> Result<(), ThrottleError> {
        let mut state = self.state();
        state.data_path.tell(Change::Paused(false))?;
        state.is_paused = false;
        self.0.resumed.notify_all();
        Ok(())
    }

    /// The data passes another program, which is told of each change from now on.
    pub(crate) fn reaches(&self, tell: impl Fn(Change) -> Result<(), String> + Send + 'static) {
        self.state().data_path = DataPath::Elsewhere(Box::new(tell));
    }

    /// No change reaches the data from now on, for this reason.
    pub(crate) fn reaches_nothing(&self, why: impl Into<String>) {
        self.state().data_path = DataPath::Nowhere(why.into());
    }

    /// Changes what runs here as another program says.
    pub(crate) fn apply(&self, change: Change) {
        // Whoever says it knows of protocols that cannot change their cap.
        let _ = match change {
            Change::Rate(cap) => self.set_rate(cap),
            Change::Paused(true) => self.pause(),
            Change::Paused(false) => self.resume(),
        };
    }

    /// Whether it is paused.
    pub fn is_paused(&self) -> bool {
        self.state().is_paused
    }

    /// The figures of the connections that it knows.
    pub fn connections(&self) -> Vec<Stats> {
        self.state().sessions.values().filter_map(|session| session.stream.stats().ok()).collect()
    }

    /// Waits until the end of a pause, if there is one, or until `ends_early`.
    pub fn wait(&self, ends_early: impl Fn() -> bool) {
        let mut state = self.state();
        while state.is_paused && !ends_early() {
            state = self.0.resumed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Caps this connection, whose data this side sends, until the result is dropped.
    pub fn caps(&self, stream: &BondedStream) -> Capped {
        self.caps_obeying(stream, Obedience::default())
    }

    /// The same for a sender that obeys others as well.
    pub(crate) fn caps_obeying(
        &self,
        stream: &BondedStream,
        Obedience { rule, requested, peer_decides }: Obedience,
    ) -> Capped {
        let state = self.state();
        let configured = stream.stats().ok().and_then(|stats| stats.max_rate);
        let caps = Caps { own: state.cap.unwrap_or(configured), rule, requested: None, peer_decides };
        let sending = Connected { stream: stream.clone(), caps: Some(caps), is_background: false };
        if state.cap.is_some() {
            // Whoever set the cap knows of protocols that cannot change it.
            let _ = sending.apply();
        }
        let capped = self.connected(state, sending);
        requested.requests().for_each(|request| capped.peer_requests.apply(request));
        capped
    }

    /// Knows of this connection, whose data the peer sends, until the result is dropped.
    pub(crate) fn hears(&self, stream: &BondedStream) -> Capped {
        self.connected(self.state(), Connected { stream: stream.clone(), caps: None, is_background: false })
    }

    fn connected(&self, mut state: MutexGuard<'_, ThrottleState>, session: Connected) -> Capped {
        let number = state.next;
        state.next += 1;
        state.sessions.insert(number, session);
        Capped { peer_requests: PeerRequests { throttle: self.clone(), number } }
    }

    /// The content, even after a panic: caps and a flag are always consistent.
    fn state(&self) -> MutexGuard<'_, ThrottleState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connected {
    /// Caps the data that this side sends. Of a receiver, whether its protocol can change the cap: the peer has the same.
    fn apply(&self) -> Result<(), ConnectionError> {
        match self.caps {
            Some(caps) => self.stream.set_max_rate(caps.effective()),
            None => self.stream.set_max_rate(self.stream.stats()?.max_rate),
        }
    }
}

impl DataPath {
    fn tell(&self, change: Change) -> Result<(), ThrottleError> {
        match self {
            Self::Here => Ok(()),
            Self::Elsewhere(tell) => tell(change).map_err(ThrottleError::OutOfReach),
            Self::Nowhere(why) => Err(ThrottleError::OutOfReach(why.clone())),
        }
    }
}

impl fmt::Debug for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Throttle").field("cap", &state.cap).field("is_paused", &state.is_paused).finish_non_exhaustive()
    }
}

/// A connection under a throttle. Dropping it takes it out.
#[derive(Debug)]
pub struct Capped {
    peer_requests: PeerRequests,
}

/// Applies the requests of a peer to a connection under a throttle. It holds no connection.
#[derive(Clone, Debug)]
pub(crate) struct PeerRequests {
    throttle: Throttle,
    number: u64,
}

impl Capped {
    /// What applies the requests of its peer.
    pub(crate) fn peer_requests(&self) -> PeerRequests {
        self.peer_requests.clone()
    }
}

impl PeerRequests {
    /// Applies one request of the peer. Connections that cannot do it go on as they are.
    pub(crate) fn apply(&self, request: SenderRequest) {
        let mut state = self.throttle.state();
        let Some(session) = state.sessions.get_mut(&self.number) else { return };
        let _ = match request {
            SenderRequest::Rate(cap) => {
                if let Some(caps) = &mut session.caps {
                    caps.requested = cap;
                }
                session.apply()
            }
            SenderRequest::Background if !std::mem::replace(&mut session.is_background, true) => {
                session.stream.set_controller(SCAVENGER)
            }
            _ => Ok(()),
        };
    }
}

impl Drop for Capped {
    fn drop(&mut self) {
        let session = self.peer_requests.throttle.state().sessions.remove(&self.peer_requests.number);
        // Without the lock, since this may be the last handle of the connection.
        drop(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: Option<Rate> = Some(Rate::from_megabits_per_second(1));
    const MIDDLE: Option<Rate> = Some(Rate::from_megabits_per_second(2));
    const HIGH: Option<Rate> = Some(Rate::from_megabits_per_second(3));

    #[test]
    fn a_peer_lowers_the_cap_of_a_server_and_never_raises_it() {
        let caps = |own, rule, requested| Caps { own, rule, requested, peer_decides: false }.effective();
        assert_eq!((caps(None, None, None), caps(None, None, LOW), caps(LOW, None, None)), (None, LOW, LOW));
        assert_eq!((caps(LOW, None, HIGH), caps(HIGH, None, LOW), caps(HIGH, MIDDLE, None)), (LOW, LOW, MIDDLE));
        assert_eq!(caps(None, MIDDLE, HIGH), MIDDLE);
    }

    #[test]
    fn a_peer_that_speaks_for_the_user_replaces_the_cap_of_the_remote_program() {
        let caps = |own, requested| Caps { own, rule: None, requested, peer_decides: true }.effective();
        assert_eq!((caps(LOW, None), caps(LOW, HIGH), caps(None, LOW)), (LOW, HIGH, LOW));
    }

    #[test]
    fn a_pause_ends_when_it_is_resumed_or_cut_short() {
        let throttle = Throttle::default();
        throttle.wait(|| false);
        throttle.pause().unwrap();
        throttle.wait(|| true);
        let other = throttle.clone();
        let waiting = std::thread::spawn(move || other.wait(|| false));
        throttle.resume().unwrap();
        waiting.join().unwrap();
        assert!(!throttle.is_paused());
    }

    #[test]
    fn a_change_that_reaches_nothing_fails_and_one_elsewhere_is_told() {
        let (throttle, (tell, told)) = (Throttle::default(), std::sync::mpsc::channel());
        throttle.reaches_nothing("nobody is there");
        assert_eq!(throttle.set_rate(LOW).unwrap_err().to_string(), "nobody is there");
        assert!(throttle.pause().is_err() && !throttle.is_paused() && throttle.rate().is_none());
        throttle.reaches(move |change| tell.send(change).map_err(|_| "gone".to_owned()));
        throttle.set_rate(LOW).unwrap();
        throttle.pause().unwrap();
        throttle.resume().unwrap();
        let all: Vec<_> = told.try_iter().collect();
        assert_eq!(all, [Change::Rate(LOW), Change::Paused(true), Change::Paused(false)]);
        assert_eq!(throttle.rate(), Some(LOW));
        drop(told);
        assert!(throttle.pause().is_err() && !throttle.is_paused());
    }
}
