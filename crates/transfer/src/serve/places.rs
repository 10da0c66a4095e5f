//! A bounded number of places for callers. Dropping a place frees it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farhaul_keys::Who;

/// One in this many places is kept for listed callers, where unlisted ones are served as well. That is enough for a listed caller to
/// find one, and little enough for a public server.
const SHARE_OF_LISTED: usize = 4;

/// How places are given to callers that hold some already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// To whoever comes first.
    FirstCome,
    /// Only while more places are free than the caller holds. So the first caller gets half of the places at most, the second one
    /// half of the rest, and one that holds none gets one as long as any is free.
    Even,
}

/// Taken places with a maximum. Clones share everything.
#[derive(Clone, Debug)]
pub(super) struct Places {
    taken: Arc<Mutex<BTreeMap<Who, usize>>>,
    max: usize,
    /// Places that no unlisted caller gets.
    kept: usize,
    sharing: Sharing,
}

/// One taken place.
#[derive(Debug)]
pub(super) struct SessionPlace {
    taken: Arc<Mutex<BTreeMap<Who, usize>>>,
    who: Who,
}

impl Places {
    pub(super) fn new(max: usize, sharing: Sharing) -> Self {
        Self { taken: Arc::default(), max, kept: 0, sharing }
    }

    /// The same, with some kept for listed callers. Of a single place, none is.
    pub(super) fn keeping_some_for_listed(self) -> Self {
        let kept = if self.max > 1 { self.max.div_ceil(SHARE_OF_LISTED) } else { 0 };
        Self { kept, ..self }
    }

    /// Takes a place, if one is free for this caller.
    pub(super) fn take(&self, who: Who) -> Option<SessionPlace> {
        let mut taken = locked(&self.taken);
        if !self.is_free_for(&taken, who) {
            return None;
        }
        *taken.entry(who).or_default() += 1;
        Some(SessionPlace { taken: Arc::clone(&self.taken), who })
    }

    /// Whether a place is free for this caller now.
    pub(super) fn has_one_for(&self, who: Who) -> bool {
        self.is_free_for(&locked(&self.taken), who)
    }

    pub(super) fn taken(&self) -> usize {
        locked(&self.taken).values().sum()
    }

    fn is_free_for(&self, taken: &BTreeMap<Who, usize>, who: Who) -> bool {
        let free = self.max.saturating_sub(taken.values().sum());
        let unlisted: usize = taken.iter().filter(|(who, _)| who.is_unlisted()).map(|(_, count)| count).sum();
        let held = taken.get(&who).copied().unwrap_or(0);
        free > 0
            && (!who.is_unlisted() || unlisted < self.max - self.kept)
            && (self.sharing == Sharing::FirstCome || held < free)
    }
}

impl Drop for SessionPlace {
    fn drop(&mut self) {
        let mut taken = locked(&self.taken);
        match taken.get_mut(&self.who) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.remove(&self.who)),
        }
    }
}

fn locked(taken: &Mutex<BTreeMap<Who, usize>>) -> MutexGuard<'_, BTreeMap<Who, usize>> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use farhaul::security::PublicKey;

    use super::*;

    fn listed(number: u8) -> Who {
        Who::Listed(PublicKey::from_bytes([number; 32]))
    }

    fn unlisted(network: u8) -> Who {
        Who::unlisted(([192, 0, network, 1], 9).into())
    }

    /// All that this caller can get.
    fn all(places: &Places, who: Who) -> Vec<SessionPlace> {
        std::iter::from_fn(|| places.take(who)).collect()
    }

    #[test]
    fn a_place_is_free_again_once_it_is_dropped() {
        let places = Places::new(2, Sharing::FirstCome);
        let [first, second] = [(); 2].map(|()| places.take(listed(1)));
        assert!(first.is_some() && second.is_some() && !places.has_one_for(listed(2)));
        assert!(places.take(listed(1)).is_none(), "an attempt that fails takes nothing");
        drop(first);
        assert_eq!((places.taken(), places.has_one_for(listed(1))), (1, true));
        assert!(places.take(listed(2)).is_some());
        drop(second);
        assert!(places.taken.lock().unwrap().is_empty(), "callers that are gone are forgotten");
    }

    #[test]
    fn a_caller_that_takes_all_it_gets_leaves_some_to_everybody_else() {
        let places = Places::new(512, Sharing::Even);
        let held: Vec<_> = (1..=8).map(|number| all(&places, listed(number))).collect();
        let counts: Vec<_> = held.iter().map(Vec::len).collect();
        assert_eq!(counts, [256, 128, 64, 32, 16, 8, 4, 2]);
        assert!(places.take(listed(9)).is_some());
    }

    #[test]
    fn unlisted_callers_leave_some_places_to_listed_callers_however_many_networks_they_come_from() {
        for (max, kept) in [(1, 0), (2, 1), (4, 1), (64, 16)] {
            let places = Places::new(max, Sharing::FirstCome).keeping_some_for_listed();
            let unlisted: Vec<_> = (0..200).flat_map(|network| all(&places, unlisted(network))).collect();
            assert_eq!((unlisted.len(), all(&places, listed(1)).len()), (max - kept, kept));
        }
        let places = Places::new(4, Sharing::FirstCome).keeping_some_for_listed();
        assert_eq!(all(&places, listed(1)).len(), 4, "listed callers may have all");
    }
}
