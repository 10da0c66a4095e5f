//! Limits of channels that hold a descriptor without need: silent ones, and those that end.

use std::collections::BTreeSet;
use std::time::Duration;

use farhaul_units::Instant;
use rustix::process::{Resource, getrlimit};

use super::table::{Channel, Key};

/// Longest time until a peer that opened a channel says something on it, as for half-open handshakes (attack A6).
const LONGEST_SILENCE: Duration = Duration::from_secs(10);

/// Longest time until a finished channel has delivered everything and the peer has ended it, as the default of a
/// connection's linger time.
const LONGEST_END: Duration = Duration::from_secs(30);

/// Most finished channels of one port. A flood of peers that end nothing must not hold more.
const MOST_ENDING: usize = 256;

/// Channels that peers open get one in this many descriptors of the process. Files and other ports get the others.
const SHARE: u64 = 4;

/// Least number of such channels.
const AT_LEAST: u64 = 16;

/// Channels with a time limit, by its end.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// Peers opened them and said nothing yet.
    silent: BTreeSet<(Instant, Key)>,
    /// The transport finished them.
    ending: BTreeSet<(Instant, Key)>,
}

impl Limits {
    /// Limits the time until the channel's peer says something.
    pub(super) fn expect_words(&mut self, now: Instant, key: Key, channel: &mut Channel) {
        let deadline = now + LONGEST_SILENCE;
        channel.deadline = Some(deadline);
        self.silent.insert((deadline, key));
    }

    /// Notes that the channel's peer said something.
    pub(super) fn hear(&mut self, key: Key, channel: &mut Channel) {
        if let Some(deadline) = channel.deadline.take() {
            self.silent.remove(&(deadline, key));
        }
    }

    /// Limits the time until the channel has ended. Returns the eldest such channel if there are too many now.
    pub(super) fn begin_to_end(&mut self, now: Instant, key: Key, channel: &mut Channel) -> Option<Key> {
        self.forget(key, channel);
        let deadline = now + LONGEST_END;
        channel.deadline = Some(deadline);
        self.ending.insert((deadline, key));
        self.ending.first().filter(|_| self.ending.len() > MOST_ENDING).map(|(_, key)| *key)
    }

    /// Forgets a channel's limit.
    pub(super) fn forget(&mut self, key: Key, channel: &mut Channel) {
        if let Some(deadline) = channel.deadline.take() {
            self.silent.remove(&(deadline, key));
            self.ending.remove(&(deadline, key));
        }
    }

    /// Whether finished channels have not ended.
    pub(super) fn has_ending(&self) -> bool {
        !self.ending.is_empty()
    }

    /// The channel with the least right to its place: the eldest silent one, or the eldest that is `done` except for
    /// its peer's end.
    pub(super) fn eldest_spare(&self, mut done: impl FnMut(Key) -> bool) -> Option<Key> {
        let silent = self.silent.first().map(|(_, key)| *key);
        silent.or_else(|| self.ending.iter().map(|(_, key)| *key).find(|key| done(*key)))
    }

    /// A channel whose time is over. The caller removes it.
    pub(super) fn overdue(&self, now: Instant) -> Option<Key> {
        [&self.silent, &self.ending].into_iter().filter_map(|set| set.first()).find(|it| it.0 <= now).map(|it| it.1)
    }

    /// The end of the next time limit.
    pub(super) fn deadline(&self) -> Option<Instant> {
        [&self.silent, &self.ending].into_iter().filter_map(|set| set.first()).map(|it| it.0).min()
    }
}

/// The number of channels that peers may open.
pub(super) fn most_accepted() -> usize {
    share(getrlimit(Resource::Nofile).current)
}

fn share(descriptors: Option<u64>) -> usize {
    let share = descriptors.map_or(u64::MAX, |all| (all / SHARE).max(AT_LEAST));
    usize::try_from(share).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_of_peers_leave_most_descriptors_to_others() {
        assert_eq!([share(Some(1024)), share(Some(10)), share(None)], [256, 16, usize::MAX]);
    }
}
