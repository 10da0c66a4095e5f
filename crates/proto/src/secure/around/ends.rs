//! Ends: of a channel, of a tunnel, and of the connection inside.
//!
//! ```text
//! connection inside is over ─▶ its channel ends, or its farewell is over ─▶ tunnel ends ─▶ peer was told ─┐
//! application releases it ─▶ inner endpoint forgets it ──────────────────────────────────────────────────┴─▶ forgotten
//! ```

use farhaul_units::{Duration, Instant};

use super::Around;
use super::links::Stage;
use crate::event::{ConnectionId, Event};
use crate::secure::address;
use crate::transport::Streams;

/// Tunnels near their end that are looked at in each turn. More of them are looked at after [`LOOKS`], all together.
const FEW: usize = 32;
/// Time between two looks: short beside a farewell.
const LOOKS: Duration = Duration::from_millis(100);

impl Around {
    /// An event of the inner endpoint, as the application hears it.
    pub(super) fn on_inner(&mut self, event: Event) -> Option<Event> {
        let id = event.connection();
        match event {
            Event::Accepted(_) if !self.on_accepted_inside(id) => return None,
            Event::Connected(_) | Event::Accepted(_) => {
                if let Some(link) = self.links.of_mut(id) {
                    link.held = true;
                }
            }
            Event::Closed(_, reason) => {
                let reason = self.links.of(id).map_or(reason, |link| link.explain(reason));
                self.note_over(id);
                return Some(Event::Closed(id, reason));
            }
            Event::Finished(_) => self.note_over(id),
            Event::Readable(_) | Event::Writable(_) | Event::SendingFinished(_) | Event::PeerComplained(..) => {}
        }
        Some(event)
    }

    /// The inner endpoint has accepted a connection. Returns false if the application must not hear of it.
    fn on_accepted_inside(&mut self, id: ConnectionId) -> bool {
        if self.links.of(id).is_some() {
            return true;
        }
        let Some(tunnel) = self.inner.peer(id).and_then(address::tunnel) else { return false };
        if self.links.get(tunnel).is_none_or(|link| link.inner.is_some()) {
            // A tunnel has one connection. Its caller tries more.
            self.unwanted.push(id);
            return false;
        }
        self.links.name(tunnel, id);
        self.tunnels.claim(tunnel);
        true
    }

    /// The connection inside is over for the application.
    pub(super) fn note_over(&mut self, id: ConnectionId) {
        if let Some(link) = self.links.of_mut(id) {
            link.over = true;
            let tunnel = link.tunnel;
            self.watch(tunnel);
        }
    }

    /// Looks at the end of a tunnel from the next turn on.
    pub(super) fn watch(&mut self, tunnel: ConnectionId) {
        if let Some(link) = self.links.get_mut(tunnel)
            && !std::mem::replace(&mut link.watched, true)
        {
            self.ending.push(tunnel);
        }
    }

    /// The connection inside ends its channel.
    pub(super) fn end_channel(&mut self, now: Instant, inner: ConnectionId, in_order: bool) {
        let Some(link) = self.links.of_mut(inner) else { return };
        let tunnel = link.tunnel;
        match link.stage {
            Stage::Ending | Stage::Over => return,
            Stage::Open | Stage::Draining if in_order && !link.unsent.is_empty() => link.stage = Stage::Draining,
            Stage::Open if in_order => {
                link.stage = Stage::Ending;
                self.tunnels.finish(now, tunnel);
            }
            Stage::Opening | Stage::Open | Stage::Draining => {
                link.stage = Stage::Ending;
                self.tunnels.abort(now, tunnel);
            }
        }
        self.watch(tunnel);
    }

    /// Everything that a tunnel had to say has arrived.
    pub(super) fn on_told(&mut self, tunnel: ConnectionId) {
        if let Some(link) = self.links.get_mut(tunnel) {
            link.stage = Stage::Over;
            self.watch(tunnel);
        }
    }

    /// Whether the peer of a connection that is over may still have to hear of it through the tunnel.
    pub(super) fn is_tunnel_leaving(&self, inner: ConnectionId) -> bool {
        let ending = self.links.of(inner).filter(|link| link.over || !link.held);
        ending.is_some_and(|link| link.stage != Stage::Over || self.tunnels.is_leaving(link.tunnel))
    }

    /// Ends tunnels whose connections are over, and forgets those that are done. Returns whether there were any.
    pub(super) fn settle(&mut self, now: Instant) -> bool {
        for id in std::mem::take(&mut self.unwanted) {
            self.inner.release(now, id);
        }
        if self.ending.len() > FEW && now < self.next_look {
            return false;
        }
        self.next_look = now + LOOKS;
        let mut settled = false;
        let mut ending = std::mem::take(&mut self.ending);
        ending.retain(|&tunnel| {
            let look = self.settle_one(now, tunnel);
            settled |= matches!(look, Settled::Again | Settled::Done);
            let stays = matches!(look, Settled::Again | Settled::Watch);
            if !stays && let Some(link) = self.links.get_mut(tunnel) {
                link.watched = false;
            }
            stays
        });
        ending.append(&mut self.ending);
        self.ending = ending;
        settled
    }

    /// When to look at ends again without another reason.
    pub(super) fn end_deadline(&self) -> Option<Instant> {
        (!self.ending.is_empty()).then_some(self.next_look)
    }

    fn settle_one(&mut self, now: Instant, tunnel: ConnectionId) -> Settled {
        let has_channels = self.has_channels();
        let Some(link) = self.links.get_mut(tunnel) else { return Settled::Wait };
        let Some(inner) = link.inner else {
            if link.stage != Stage::Over {
                return Settled::Wait;
            }
            return self.forget(now, tunnel);
        };
        let (held, over, stage) = (link.held, link.over, link.stage);
        if !has_channels && over && matches!(stage, Stage::Opening | Stage::Open) {
            if self.inner.is_leaving(inner) {
                return Settled::Watch;
            }
            link.stage = Stage::Over;
            self.tunnels.close(now, tunnel);
            return Settled::Again;
        }
        if link.stage == Stage::Over && self.inner.peer(inner).is_none() && !self.tunnels.is_leaving(tunnel) {
            return self.forget(now, tunnel);
        }
        // The application's release comes back here.
        if held { Settled::Wait } else { Settled::Watch }
    }

    fn forget(&mut self, now: Instant, tunnel: ConnectionId) -> Settled {
        self.links.remove(tunnel);
        self.tunnels.release(now, tunnel);
        Settled::Done
    }

    /// Ends the tunnels that have no connection inside after their time.
    pub(super) fn end_idle(&mut self, now: Instant) {
        while let Some(&(until, tunnel)) = self.idle.front()
            && until <= now
        {
            self.idle.pop_front();
            if self.links.get(tunnel).is_some_and(|link| link.inner.is_none()) {
                self.tunnels.close(now, tunnel);
                self.forget(now, tunnel);
            }
        }
    }
}

/// The result of a look at a tunnel's end.
enum Settled {
    /// It was forgotten.
    Done,
    /// Something was done, and more is to do.
    Again,
    /// Nothing will report that more is to do.
    Watch,
    /// Something will.
    Wait,
}
