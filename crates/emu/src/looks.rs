//! For each host, the last time at which no packet was waiting there.
//!
//! A host that was not ready at a poll had no packets. Neither had a host that was read until it was empty. A host may
//! have more packets than fit a round. Then the last time at which it was empty counts, because its packets may have
//! arrived since.

use farhaul_units::Instant;

use crate::network::HostId;

/// The last polls of all hosts.
#[derive(Debug)]
pub(crate) struct Looks {
    hosts: Vec<Look>,
    /// When all hosts were polled last, and the time before.
    asked: Instant,
    asked_before: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    /// All packets sent until then are known.
    known: Instant,
    is_ready: bool,
}

impl Looks {
    /// `hosts` hosts without packets.
    pub(crate) fn of(hosts: usize) -> Self {
        let look = Look { known: Instant::ZERO, is_ready: false };
        Self { hosts: vec![look; hosts], asked: Instant::ZERO, asked_before: Instant::ZERO }
    }

    /// All hosts were polled at `now`, and the `ready` ones have packets.
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

    /// The earliest possible arrival of the packets that `host` has now. A host that was empty at the poll before sent
    /// them at the end of the wait, at `woken` if there was a wait.
    pub(crate) fn since(&self, host: HostId, woken: Option<Instant>) -> Instant {
        let known = self.hosts[host.0 as usize].known;
        woken.filter(|_| known >= self.asked_before).unwrap_or(known)
    }

    /// `host` is empty at `now`.
    pub(crate) fn on_emptied(&mut self, host: HostId, now: Instant) {
        self.hosts[host.0 as usize].known = now;
    }

    /// All packets that any host sent until then are known.
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
        // Read, but not until empty. Other hosts then made the round long.
        looks.on_asked(at(900), [A, B].into_iter());
        assert_eq!((looks.since(A, Some(at(890))), looks.since(B, Some(at(890)))), (at(10), at(890)));
        looks.on_emptied(B, at(910));
        assert_eq!(looks.oldest(), at(10));
        looks.on_emptied(A, at(920));
        assert_eq!(looks.oldest(), at(910));
    }
}
