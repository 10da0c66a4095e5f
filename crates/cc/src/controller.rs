//! The interface of a controller: events and measurements go in, settings come out.

use farhaul_units::SendPeriod;

pub(crate) use crate::control::Control;
pub(crate) use crate::event::{
    AckEvent, CustomMessage, DeliveryEvent, DeliverySample, LossEvent, LostFlight, RateSample, ReceivedEvent,
    SentEvent, TimeoutEvent,
};
pub(crate) use crate::known_path::KnownPath;
pub(crate) use crate::path::Path;

/// Decides how fast a connection sends.
///
/// The transport calls the methods in the order of events. Every method may change any field of [`Control`], which the
/// transport reads after the call. A controller that panics or sets an unusable value ends its connection, and no other
/// ([`Supervised`](crate::Supervised)). All methods except [`on_ack`](Controller::on_ack) and
/// [`on_loss`](Controller::on_loss) have a default that does nothing. No method is called per packet unless the
/// controller requests it.
#[expect(unused_variables, reason = "the defaults use no argument, and implementations are to see the names")]
pub trait Controller: Send {
    /// The name in the registry, with its options.
    fn name(&self) -> &str;

    /// An earlier connection has found the path so. Called before [`on_connect`](Controller::on_connect), if at all.
    ///
    /// Paths change: a controller may use this once its own measurements agree, and with care (paper:rfc9959).
    fn recall(&mut self, known: KnownPath) {}

    /// What the next connection over this path should know. `None` if this one has not learned it, or has refuted what it recalled.
    ///
    /// If the path has not limited the connection for long enough, only what was recalled can count, and not what was found.
    fn remember(&self, path: &Path, limited_by_path: bool) -> Option<KnownPath> {
        None
    }

    /// The connection is established. `control` holds the transport's initial values.
    fn on_connect(&mut self, path: &Path, control: &mut Control) {}

    /// The controller takes over a connection in mid-transfer from another one. It is called in the place of
    /// [`on_connect`](Controller::on_connect).
    ///
    /// `control` holds the window and the period of the one before, so that the switch is no pause. Neither is much more than
    /// the path carried. All other settings are the transport's initial ones, and what `path` has was measured under the one
    /// before. By default a controller goes on with that window, unpaced, unless its `on_connect` sets others.
    fn on_take_over(&mut self, path: &Path, control: &mut Control) {
        control.send_period = SendPeriod::UNPACED;
        self.on_connect(path, control);
    }

    /// The peer acknowledged new data in order, by a full, medium or light ACK ([`AckEvent::light`]).
    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control);

    /// Packets are known to have arrived, in order or not. Called before the acknowledgement that showed it, and only if
    /// [`wants_deliveries`](Controller::wants_deliveries) returns `true`.
    fn on_delivery(&mut self, path: &Path, delivery: &DeliveryEvent, control: &mut Control) {}

    /// Packets are about to leave, and none is in flight because the application had none.
    fn on_restart(&mut self, path: &Path, control: &mut Control) {}

    /// The peer reported losses.
    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control);

    /// All packets reported lost have arrived. Called before the acknowledgement that showed it.
    ///
    /// `spurious` means that all of them arrived before their retransmissions could have. The packets were reordered,
    /// not lost, so the reaction of [`on_loss`](Controller::on_loss) may be undone (RFC 4015).
    fn on_recovered(&mut self, path: &Path, spurious: bool, control: &mut Control) {}

    /// The expiration time passed without a packet from the peer while data was unacknowledged.
    fn on_timeout(&mut self, path: &Path, timeout: &TimeoutEvent, control: &mut Control) {}

    /// The peer asks to slow down, because its RTT grows (type 4, which libudt 4.11 obeys but never sends).
    ///
    /// Returns whether the controller has reacted. Otherwise the transport sends one ninth slower until the
    /// controller's next decision. Any node on the path can forge this packet.
    fn on_warning(&mut self, path: &Path, control: &mut Control) -> bool {
        false
    }

    /// A SYN interval (10 ms) with data sent or in flight has ended. Only a transport with a timer for it calls this,
    /// as that of the 2004 paper. UDT4 never does: acknowledgements take its place.
    fn on_syn(&mut self, path: &Path, control: &mut Control) {}

    /// Data packets left, retransmissions included. Called once per burst, and only if
    /// [`wants_packets`](Controller::wants_packets) returns `true`.
    fn on_sent(&mut self, path: &Path, sent: &SentEvent<'_>, control: &mut Control) {}

    /// Data packets arrived, duplicates included. Called once per receive batch, and only if
    /// [`wants_packets`](Controller::wants_packets) returns `true`.
    fn on_received(&mut self, path: &Path, received: &ReceivedEvent<'_>, control: &mut Control) {}

    /// A user-defined control packet (type 0x7FFF) arrived. Called only if
    /// [`wants_custom_messages`](Controller::wants_custom_messages) returns `true`.
    fn on_custom_message(&mut self, path: &Path, kind: u16, body: &[u8], control: &mut Control) {}

    /// The next user-defined control packet for the controller of the peer. Asked after each other call, until it returns
    /// `None`, and only if [`wants_custom_messages`](Controller::wants_custom_messages) returns `true`.
    ///
    /// Such packets leave before queued data, are not reliable, and may overtake each other. While 64 of them wait to
    /// leave, the transport does not ask. A message that does not fit into a packet is dropped.
    fn next_message(&mut self) -> Option<CustomMessage> {
        None
    }

    /// The connection has ended.
    fn on_close(&mut self) {}

    /// Whether to call [`on_sent`](Controller::on_sent) and [`on_received`](Controller::on_received). Must not change.
    fn wants_packets(&self) -> bool {
        false
    }

    /// Whether to call [`on_delivery`](Controller::on_delivery) and [`on_restart`](Controller::on_restart), and to ask the
    /// peer for receipts. Must not change.
    fn wants_deliveries(&self) -> bool {
        false
    }

    /// Whether to exchange custom control packets with the controller of the peer: to call
    /// [`on_custom_message`](Controller::on_custom_message) and [`next_message`](Controller::next_message). Off by default,
    /// because those of the peer are hostile input. Must not change.
    fn wants_custom_messages(&self) -> bool {
        false
    }
}
