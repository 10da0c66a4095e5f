//! For each host, the last time at which no packet was waiting there.
//!
//! A host that was not ready at a poll had no packets. Neither had a host that was read until it was empty. A host may
//! have more packets than fit a round. Then the last time at which it was empty counts, because its packets may have
//! arrived since.

use farhaul_units::Instant;

use crate::network::HostId;

/// The last polls of all hosts.
#[derive(Debug)]
pub(crate) struct Polls {
    hosts: Vec<LastPoll>,
    /// When all hosts were polled last, and the time before.
    polled: Instant,
    polled_before: Instant,
}

#[derive(Clone, Copy, Debug)]
struct LastPoll {
    /// The last time at which no packet was waiting at the host.
    empty_at: Instant,
    is_ready: bool,
}

impl Polls {
    /// `hosts` hosts without packets.
    pub(crate) fn of(hosts: usize) -> Self {
        let poll = LastPoll { empty_at: Instant::ZERO, is_ready: false };
        Self { hosts: vec![poll; hosts], polled: Instant::ZERO, polled_before: Instant::ZERO }
    }

    /// All hosts were polled at `now`, and the `ready` ones have packets.
    pub(crate) fn on_poll(&mut self, now: Instant, ready: impl Iterator<Item = HostId>) {
        self.polled_before = self.polled;
        self.polled = now;
        ready.for_each(|host| self.hosts[host.0 as usize].is_ready = true);
        for poll in &mut self.hosts {
            if !poll.is_ready {
                poll.empty_at = now;
            }
            poll.is_ready = false;
        }
    }

    /// The earliest possible arrival of the packets that `host` has now. A host that was empty at the poll before sent
    /// them at the end of the wait, at `woken` if there was a wait.
    pub(crate) fn since(&self, host: HostId, woken: Option<Instant>) -> Instant {
        let empty_at = self.hosts[host.0 as usize].empty_at;
        woken.filter(|_| empty_at >= self.polled_before).unwrap_or(empty_at)
    }

    /// `host` is empty at `now`.
    pub(crate) fn on_emptied(&mut self, host: HostId, now: Instant) {
        self.hosts[host.0 as usize].empty_at = now;
    }

    /// The earliest of these times over all hosts.
    pub(crate) fn oldest(&self) -> Instant {
        self.hosts.iter().map(|poll| poll.empty_at).min().unwrap_or(self.polled)
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
    fn a_packet_that_ends_a_wait_arrived_at_its_end() {
        let mut polls = Polls::of(2);
        polls.on_poll(at(10), [].into_iter());
        polls.on_poll(at(500), [A].into_iter());
        assert_eq!((polls.since(A, Some(at(480))), polls.since(A, None)), (at(480), at(10)));
        polls.on_emptied(A, at(530));
        assert_eq!(polls.oldest(), at(500), "the other one was only polled");
        polls.on_poll(at(600), [A, B].into_iter());
        assert_eq!((polls.since(A, None), polls.since(B, None)), (at(530), at(500)));
    }

    #[test]
    fn leftover_packets_arrived_since_the_host_was_last_empty() {
        let mut polls = Polls::of(2);
        polls.on_poll(at(10), [].into_iter());
        polls.on_poll(at(20), [A].into_iter());
        // Read, but not until empty. Other hosts then made the round long.
        polls.on_poll(at(900), [A, B].into_iter());
        assert_eq!((polls.since(A, Some(at(890))), polls.since(B, Some(at(890)))), (at(10), at(890)));
        polls.on_emptied(B, at(910));
        assert_eq!(polls.oldest(), at(10));
        polls.on_emptied(A, at(920));
        assert_eq!(polls.oldest(), at(910));
    }
}
