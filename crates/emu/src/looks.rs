//! When the emulator last knew of each host that nothing waits there.
//!
//! A host that was not ready when all were asked had nothing, and so had one that was read from until it had no more. Of one that
//! has more than fits a round, only the time counts at which it last had nothing: what is found there later may have come since.

use farhaul_units::Instant;

use crate::network::HostId;

/// The last looks at all hosts.
#[derive(Debug)]
pub(crate) struct Looks {
    hosts: Vec<Look>,
    /// When all hosts were asked for the last time, and the time before.
    asked: Instant,
    asked_before: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    /// Until when it is known what the host sent.
    known: Instant,
    is_ready: bool,
}

impl Looks {
    /// So many hosts, that have nothing yet.
    pub(crate) fn of(hosts: usize) -> Self {
        let look = Look { known: Instant::ZERO, is_ready: false };
        Self { hosts: vec![look; hosts], asked: Instant::ZERO, asked_before: Instant::ZERO }
    }

    /// All were asked at `now`, and these have something.
    pub(crate) fn on_asked(&mut self, now: Instant, ready: impl Iterator<Item = HostId>) {
        self.asked_before = self.asked;
        self.asked = now;
        ready.for_each(|host| self.hosts[host.0 as usize].is_ready = true);
        for look in &mut self.hosts {
            if !look.is_ready {
                look.known = now;
            }
            look.is_ready = false;
        }
    }

    /// Since when what `host` has now may have come. Whoever had nothing the time before handed it over at the end of the wait,
    /// which is `woken` if there was one.
    pub(crate) fn since(&self, host: HostId, woken: Option<Instant>) -> Instant {
        let known = self.hosts[host.0 as usize].known;
        woken.filter(|_| known >= self.asked_before).unwrap_or(known)
    }

    /// At `now`, `host` has nothing any more.
    pub(crate) fn on_emptied(&mut self, host: HostId, now: Instant) {
        self.hosts[host.0 as usize].known = now;
    }

    /// Until when it is known what all hosts sent.
    pub(crate) fn oldest(&self) -> Instant {
        self.hosts.iter().map(|look| look.known).min().unwrap_or(self.asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    const A: HostId = HostId(0);
    const B: HostId = HostId(1);

    #[test]
    fn what_ends_a_wait_came_at_its_end() {
        let mut looks = Looks::of(2);
        looks.on_asked(at(10), [].into_iter());
        looks.on_asked(at(500), [A].into_iter());
        assert_eq!((looks.since(A, Some(at(480))), looks.since(A, None)), (at(480), at(10)));
        looks.on_emptied(A, at(530));
        assert_eq!(looks.oldest(), at(500), "the other one was only asked");
        looks.on_asked(at(600), [A, B].into_iter());
        assert_eq!((looks.since(A, None), looks.since(B, None)), (at(530), at(500)));
    }

    #[test]
    fn what_a_host_has_left_over_came_since_it_last_had_nothing() {
        let mut looks = Looks::of(2);
        looks.on_asked(at(10), [].into_iter());
        looks.on_asked(at(20), [A].into_iter());
        // Read from, but not to the end; then others made the round long.
        looks.on_asked(at(900), [A, B].into_iter());
        assert_eq!((looks.since(A, Some(at(890))), looks.since(B, Some(at(890)))), (at(10), at(890)));
        looks.on_emptied(B, at(910));
        assert_eq!(looks.oldest(), at(10));
        looks.on_emptied(A, at(920));
        assert_eq!(looks.oldest(), at(910));
    }
}
