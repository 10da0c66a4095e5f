//! The caps of keys: rate, sessions, bytes and files, over all connections of a key.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use farhaul::security::{Grant, PublicKey};
use farhaul_session::{Ends, FailCode, Failure};
use farhaul_udp::Clock;
use farhaul_units::{Instant, Rate};

/// Sleep between two portions of data under a cap of the rate.
const SLEEP: Duration = Duration::from_millis(100);
/// Smallest portion, bytes.
const LEAST_PORTION: usize = 1024;

/// Bytes that are hashed in the time of one that moves: at 1 Gbit/s, 2 GB/s are the work of one processor.
const WORK_SHARE: u64 = 16;

/// What the keys of a listener have used. Clones share everything.
#[derive(Clone, Debug, Default)]
pub struct Usages {
    of_keys: Arc<Mutex<BTreeMap<PublicKey, Usage>>>,
}

/// What the sessions of a key use together, or those of clients that nobody can tell apart. Clones share everything.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    used: Arc<Mutex<Used>>,
}

#[derive(Debug, Default)]
struct Used {
    /// Running sessions.
    sessions: u32,
    /// When the next byte may be moved.
    free_at: Option<Instant>,
    /// Bytes moved since the start, or since the keys were last read.
    bytes: u64,
    /// Bytes that files under way are said to get beyond those.
    claimed: u64,
    /// Files and directories, since the same time.
    files: u64,
    /// The key may do less than when its sessions began.
    revoked: bool,
}

const REVOKED: Exhausted = Exhausted("the key is not admitted any more, or may do less than before");
const ENDED: Exhausted = Exhausted("the session ended during a wait for the rate of the key");
const NO_MORE_BYTES: Exhausted =
    Exhausted("the key may move no more bytes: its line in authorized_keys has bytes=SIZE");

/// Why a client may move no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted(pub &'static str);

impl From<Exhausted> for Failure {
    fn from(Exhausted(why): Exhausted) -> Self {
        Self::new(FailCode::GivenUp, why)
    }
}

impl Usages {
    /// Begins a session of a key.
    ///
    /// # Errors
    /// As many sessions as the key may have are running.
    pub fn begin(&self, grant: &Grant) -> Result<Permit, Exhausted> {
        let mut of_keys = self.of_keys();
        // Nobody holds the usage of a key without sessions. It has its totals to remember, if they have caps.
        of_keys.retain(|_, usage| Arc::strong_count(&usage.used) > 1 || usage.used().has_totals());
        let usage = of_keys.entry(grant.key).or_default().clone();
        drop(of_keys);
        let mut used = usage.used();
        if grant.sessions.is_some_and(|most| used.sessions >= most) {
            return Err(Exhausted("as many sessions as your key is allowed are running; try again later"));
        }
        used.sessions += 1;
        drop(used);
        let (rate, bytes, files) = (grant.rate, grant.bytes, grant.files);
        Ok(Permit { usage: Some(usage), rate, bytes, files, ends: Ends::default() })
    }

    /// Ends the running sessions of a key. They store no more of the data that has arrived.
    pub fn revoke(&self, key: PublicKey) {
        if let Some(usage) = self.of_keys().remove(&key) {
            usage.used().revoked = true;
        }
    }

    /// Forgets the bytes and files of all keys. Running sessions have theirs again.
    pub fn reset(&self) {
        for usage in self.of_keys().values() {
            let mut used = usage.used();
            (used.bytes, used.files) = (0, 0);
        }
    }

    fn of_keys(&self) -> MutexGuard<'_, BTreeMap<PublicKey, Usage>> {
        self.of_keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Usage {
    /// Begins a session of clients that share a rate.
    pub fn begin(&self, rate: Rate) -> Permit {
        self.used().sessions += 1;
        let (usage, ends) = (Some(self.clone()), Ends::default());
        Permit { usage, rate: Some(rate), bytes: None, files: None, ends }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running session, and the caps of its client. The default has none.
#[derive(Debug, Default)]
pub struct Permit {
    usage: Option<Usage>,
    rate: Option<Rate>,
    bytes: Option<u64>,
    files: Option<u64>,
    /// Whether the session ends, for waits.
    ends: Ends,
}

/// The bytes that a file under way is still said to get. They count against the cap of its key until they have moved, or the
/// claim is dropped.
#[derive(Debug, Default)]
pub struct Claim {
    usage: Option<Usage>,
    left: u64,
}

impl Used {
    const fn has_totals(&self) -> bool {
        self.bytes > 0 || self.files > 0
    }

    /// Whether a key with the cap `most` may move this many bytes beyond those that it has moved or claimed.
    fn has_room(&self, bytes: u64, most: u64) -> bool {
        self.bytes.saturating_add(self.claimed).saturating_add(bytes) <= most
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(usage) = &self.usage {
            usage.used().claimed -= self.left;
        }
    }
}

impl Claim {
    /// Adds bytes that the same key has claimed.
    fn add(&mut self, mut more: Self) {
        self.left += std::mem::take(&mut more.left);
        self.usage = self.usage.take().or_else(|| more.usage.take());
    }
}

impl Permit {
    /// The same, whose waits end once the session does.
    pub fn ending_by(mut self, ends: Ends) -> Self {
        self.ends = ends;
        self
    }

    /// Bytes to move at once, so that sleeps are short.
    pub fn portion(&self) -> usize {
        self.rate
            .map_or(usize::MAX, |rate| usize::try_from(rate.bytes_in(SLEEP)).unwrap_or(usize::MAX).max(LEAST_PORTION))
    }

    /// Counts a file or directory that is to be made or read.
    ///
    /// # Errors
    /// The key may move no more of them.
    pub fn charge_file(&self) -> Result<(), Exhausted> {
        let Some(usage) = &self.usage else { return Ok(()) };
        let mut used = usage.used();
        if used.revoked {
            return Err(REVOKED);
        }
        let Some(most) = self.files else { return Ok(()) };
        if used.files >= most {
            return Err(Exhausted("the key may move no more files: its line in authorized_keys has files=N"));
        }
        used.files += 1;
        Ok(())
    }

    /// Claims the bytes that a file is said to get, before any of them is stored.
    ///
    /// # Errors
    /// They are more than the key may move, with all that its other sessions have claimed.
    pub fn claim(&self, bytes: u64) -> Result<Claim, Exhausted> {
        let (Some(usage), Some(most)) = (&self.usage, self.bytes) else { return Ok(Claim::default()) };
        let mut used = usage.used();
        if !used.has_room(bytes, most) {
            return Err(NO_MORE_BYTES);
        }
        used.claimed = used.claimed.saturating_add(bytes);
        Ok(Claim { usage: Some(usage.clone()), left: bytes })
    }

    /// Claims more bytes for something that grows.
    pub fn claim_more(&self, bytes: u64, claim: &mut Claim) -> Result<(), Exhausted> {
        claim.add(self.claim(bytes)?);
        Ok(())
    }

    /// Counts bytes that are to be moved, and waits for as long as the rate gives them. So the last of them move no earlier than
    /// at the rate, however many come at once. Returns the time of the wait.
    ///
    /// # Errors
    /// The key may move no more bytes, or the session ends.
    pub fn charge(&self, bytes: usize, clock: Clock) -> Result<Duration, Exhausted> {
        self.charge_claimed(bytes, &mut Claim::default(), clock)
    }

    /// The same for bytes of a file that has claimed them. Those beyond its claim count as others.
    pub fn charge_claimed(&self, bytes: usize, claim: &mut Claim, clock: Clock) -> Result<Duration, Exhausted> {
        self.take(bytes as u64, bytes as u64, claim, clock)
    }

    /// The same for the bytes of a hole, which are hashed and do not move: they count whole, and take a part of their time.
    pub fn charge_hole(&self, bytes: u64, claim: &mut Claim, clock: Clock) -> Result<Duration, Exhausted> {
        self.take(bytes, bytes / WORK_SHARE, claim, clock)
    }

    /// The same for bytes that are only compared.
    pub fn charge_work(&self, bytes: u64, clock: Clock) -> Result<Duration, Exhausted> {
        self.take(0, bytes / WORK_SHARE, &mut Claim::default(), clock)
    }

    /// The same for a whole file that the host copies by itself. It has room for all of it before the first byte.
    pub fn charge_copy(&self, bytes: u64, clock: Clock) -> Result<(), Exhausted> {
        let (mut claim, mut left) = (self.claim(bytes)?, bytes);
        while left > 0 {
            // Sessions of the key take turns.
            let part = left.min(self.portion() as u64);
            self.take(part, part, &mut claim, clock)?;
            left -= part;
        }
        Ok(())
    }

    /// Counts `bytes`, and waits as long as the rate takes for `timed` bytes.
    fn take(&self, bytes: u64, timed: u64, claim: &mut Claim, clock: Clock) -> Result<Duration, Exhausted> {
        let Some(usage) = &self.usage else { return Ok(Duration::ZERO) };
        let mut used = usage.used();
        if used.revoked {
            return Err(REVOKED);
        }
        let claimed = claim.left.min(bytes);
        claim.left -= claimed;
        used.claimed -= claimed;
        if self.bytes.is_some_and(|most| !used.has_room(bytes, most)) {
            return Err(NO_MORE_BYTES);
        }
        // Without a cap, nothing is to be remembered.
        used.bytes = used.bytes.saturating_add(self.bytes.map_or(0, |_| bytes));
        let Some(rate) = self.rate else { return Ok(Duration::ZERO) };
        let began = clock.now();
        let turn = used.free_at.map_or(began, |at| at.max(began)) + rate.time_for(timed);
        used.free_at = Some(turn);
        drop(used);
        loop {
            let now = clock.now();
            let left = turn.saturating_since(now);
            if left.is_zero() {
                return Ok(now - began);
            }
            self.ends.check().map_err(|_| ENDED)?;
            thread::park_timeout(left.min(SLEEP));
            if usage.used().revoked {
                return Err(REVOKED);
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(usage) = &self.usage {
            usage.used().sessions -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use farhaul::security::AuthorizedKeys;

    use super::*;

    fn grant(options: &str) -> Grant {
        let key = PublicKey::from_bytes([7; 32]);
        AuthorizedKeys::parse(&format!("{key} alice {options}")).unwrap().grants()[0].clone()
    }

    #[test]
    fn sessions_of_a_key_are_counted_until_they_end() {
        let (usages, alice) = (Usages::default(), grant("sessions=2"));
        let first = usages.begin(&alice).unwrap();
        let _second = usages.begin(&alice).unwrap();
        assert!(usages.begin(&alice).is_err());
        drop(first);
        assert!(usages.begin(&alice).is_ok());
    }

    #[test]
    fn bytes_of_a_key_are_counted_over_its_sessions_until_the_keys_are_read_again() {
        let (usages, alice, clock) = (Usages::default(), grant("bytes=1000B"), Clock::start());
        let first = usages.begin(&alice).unwrap();
        assert!(first.charge(600, clock).is_ok() && first.charge(401, clock).is_err());
        drop(first);
        let second = usages.begin(&alice).unwrap();
        assert!(second.charge(400, clock).is_ok() && second.charge(1, clock).is_err());
        usages.reset();
        assert!(second.charge(1_000, clock).is_ok() && second.charge(1, clock).is_err());
    }

    #[test]
    fn claims_of_all_sessions_count_against_the_bytes_of_a_key_until_they_are_dropped() {
        let (usages, alice, clock) = (Usages::default(), grant("bytes=1000B"), Clock::start());
        let [one, other] = [(); 2].map(|()| usages.begin(&alice).unwrap());
        assert!(one.claim(1_001).is_err() && one.claim(u64::MAX).is_err());
        let mut claim = one.claim(600).unwrap();
        assert!(other.claim(401).is_err() && other.charge(401, clock).is_err());
        // What has moved counts once.
        one.charge_claimed(500, &mut claim, clock).unwrap();
        let rest = other.claim(400).unwrap();
        assert!(other.claim(1).is_err());
        one.charge_claimed(100, &mut claim, clock).unwrap();
        assert!(one.charge_claimed(1, &mut claim, clock).is_err(), "beyond its claim, and the other one has the rest");
        drop((claim, rest));
        assert!(other.charge(400, clock).is_ok() && other.charge(1, clock).is_err());
    }

    #[test]
    fn files_of_a_key_are_counted_as_its_bytes_are() {
        let (usages, alice) = (Usages::default(), grant("files=2"));
        let first = usages.begin(&alice).unwrap();
        assert!(first.charge_file().is_ok());
        drop(first);
        let second = usages.begin(&alice).unwrap();
        assert!(second.charge_file().is_ok() && second.charge_file().is_err());
        usages.reset();
        assert!(second.charge_file().is_ok());
        let nothing = usages.begin(&grant("files=0")).unwrap();
        assert!(nothing.charge_file().is_err());
        usages.revoke(alice.key);
        assert_eq!(second.charge_file(), Err(REVOKED));
    }

    #[test]
    fn a_key_that_is_revoked_moves_nothing_until_its_next_session() {
        let (usages, alice, clock) = (Usages::default(), grant("rate=8kbit sessions=1"), Clock::start());
        let first = usages.begin(&alice).unwrap();
        let began = clock.now();
        thread::scope(|scope| {
            let waits = scope.spawn(|| first.charge(1_000_000, clock));
            while usages.of_keys()[&alice.key].used().free_at.is_none() {
                thread::yield_now();
            }
            usages.revoke(alice.key);
            assert_eq!(waits.join().unwrap(), Err(REVOKED));
        });
        assert!(clock.now() - began < Duration::from_secs(10), "not the 1000 s of its rate");
        assert_eq!(first.charge(1, clock), Err(REVOKED));
        assert!(usages.begin(&alice).unwrap().charge(1, clock).is_ok());
    }

    #[test]
    fn a_wait_for_the_rate_ends_with_its_session() {
        let (usages, alice, clock) = (Usages::default(), grant("rate=8kbit"), Clock::start());
        let looks = AtomicU32::new(0);
        let permit = usages.begin(&alice).unwrap();
        let permit = permit.ending_by(Ends::when(move || looks.fetch_add(1, Ordering::Relaxed) > 0));
        let began = clock.now();
        assert_eq!(permit.charge_hole(16_000_000, &mut Claim::default(), clock), Err(ENDED));
        assert!(clock.now() - began < Duration::from_secs(10), "not the 1000 s of its rate");
        assert_eq!(permit.charge(1_000, clock), Err(ENDED));
    }

    #[test]
    fn holes_count_as_bytes_and_take_a_sixteenth_of_their_time() {
        let (usages, alice, clock) = (Usages::default(), grant("rate=8mbit bytes=1000000B"), Clock::start());
        let permit = usages.begin(&alice).unwrap();
        let mut claim = permit.claim(800_000).unwrap();
        let (began, waited) = (clock.now(), permit.charge_hole(800_000, &mut claim, clock).unwrap());
        assert!(waited >= Duration::from_millis(45) && clock.now() - began >= waited, "{waited:?}");
        permit.charge_work(160_000, clock).unwrap();
        assert!(clock.now() - began >= Duration::from_millis(60));
        assert!(permit.charge_hole(200_001, &mut Claim::default(), clock).is_err());
        assert!(permit.charge_hole(200_000, &mut Claim::default(), clock).is_ok());
    }

    #[test]
    fn sessions_of_a_key_move_no_faster_than_its_rate_together() {
        let (usages, alice, clock) = (Usages::default(), grant("rate=8mbit"), Clock::start());
        let permits = [(); 2].map(|()| usages.begin(&alice).unwrap());
        assert_eq!(permits[0].portion(), 100_000);
        let began = clock.now();
        let waited: Duration = (0..11).map(|turn| permits[turn % 2].charge(5_000, clock).unwrap()).sum();
        assert!(waited >= Duration::from_millis(50) && clock.now() - began >= waited);
    }
}
