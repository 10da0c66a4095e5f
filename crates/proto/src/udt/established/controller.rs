//! The controller of a connection: its replacement in mid-transfer, its messages, and the end that it causes if it fails.

use farhaul_cc::{Controller, CustomMessage, Supervised};
use farhaul_units::Instant;

use super::{MAX_CUSTOM, UdtConnection};
use crate::endpoint::closing::CloseKind;
use crate::endpoint::protocol::Effect;
use crate::error::ConnectionLost;

impl UdtConnection {
    /// Another controller goes on. Nothing in flight is lost or sent again by that.
    pub(super) fn replace_controller(&mut self, now: Instant, controller: Box<dyn Controller>) {
        self.sent_packets.forget();
        // What another law finds is nothing that the user's would find.
        self.recollection.leave();
        let controller = Supervised::new(|| controller);
        if controller.wants_deliveries() {
            self.sender.begin_to_follow_deliveries();
        }
        let path = self.path(now);
        self.congestion.replace(controller, &path);
        self.follow_packets();
        self.apply_control();
        self.sender.hasten(now);
    }

    /// Queues the messages of the controller to that of the peer.
    pub(super) fn take_messages(&mut self) {
        for _ in self.custom.len()..MAX_CUSTOM {
            let Some(CustomMessage { kind, body }) = self.congestion.controller.next_message() else { return };
            self.queue_custom(kind, body);
        }
    }

    /// Whether the controller has failed, which ends the connection.
    pub(super) const fn has_failed(&self) -> bool {
        self.congestion.controller.failure().is_some()
    }

    /// The same, before the connection has noticed.
    pub(super) const fn must_end(&self) -> bool {
        self.has_failed() && !self.closing.has_begun()
    }

    /// Ends the connection if its controller has failed. The peer is told that it is aborted.
    pub(super) fn look_at_controller(&mut self, now: Instant) -> Effect {
        let Some(failure) = self.congestion.controller.failure().filter(|_| self.must_end()) else {
            return Effect::GoOn;
        };
        self.closing.begin(now, CloseKind::Aborted);
        Effect::Lost(ConnectionLost::ControllerFailed(failure))
    }
}
