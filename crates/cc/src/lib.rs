//! Congestion controllers: one small file each, behind one trait.
//!
//! A controller hears what happens on a connection ([`AckEvent`], [`LossEvent`], …), reads what the transport measured
//! ([`Path`]) and sets what it may set ([`Control`]): a congestion window *and* a packet sending period, because UDT's
//! laws are laws of the period. The shape is that of UDT4's configurable congestion control (CCC), with event structs in
//! place of callbacks with arguments, so that an event can grow without breaking anybody's controller.
//!
//! | to | open |
//! | --- | --- |
//! | see what a controller is told | `event.rs`, `path.rs` |
//! | see what it may set | `control.rs` |
//! | pick one by name | `registry.rs` (the table), `spec.rs` (its text form) |
//! | read UDT's law | `rate/udt_native.rs` beside the paper, then `rate/udt.rs` for what we changed |
//! | read TCP's laws | `window/reno.rs` beside RFC 5681 |
//! | add one | one file, one row in `registry.rs`, one snapshot in `tests/curves.rs` |
#![forbid(unsafe_code)]

mod control;
mod event;
mod path;
mod rate;
pub mod registry;
mod spec;
mod window;

pub use control::Control;
pub use event::{AckEvent, DeliverySample, LossEvent, ReceivedEvent, SentEvent, TimeoutEvent};
pub use path::Path;
pub use spec::{Spec, SpecError};

/// Decides how fast a connection sends.
///
/// Called by the transport in the order of events; every method may change any field of [`Control`], which the transport
/// reads after the call. All methods except [`on_ack`](Controller::on_ack) and [`on_loss`](Controller::on_loss) have a
/// default that does nothing. Nothing is called per packet unless the controller asks for it.
pub trait Controller: Send {
    /// The name under which the registry knows it, with its options.
    fn name(&self) -> &str;

    /// The connection is established; `control` holds the transport's initial values.
    fn on_connect(&mut self, path: &Path, control: &mut Control) {
        let _ = (path, control);
    }

    /// The peer acknowledged new data in order (full and medium ACKs; light ACKs with [`AckEvent::light`]).
    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control);

    /// The peer reported losses.
    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control);

    /// Everything that was reported lost has arrived. `spurious` says that all of it came before its repair can have: packets
    /// were overtaken, none was lost, and what [`on_loss`](Controller::on_loss) did about them may be undone (RFC 4015).
    /// Called before the acknowledgement that showed it.
    fn on_recovered(&mut self, path: &Path, spurious: bool, control: &mut Control) {
        let _ = (path, spurious, control);
    }

    /// Nothing was heard for the expiration time while data was unacknowledged.
    fn on_timeout(&mut self, path: &Path, timeout: &TimeoutEvent, control: &mut Control) {
        let _ = (path, timeout, control);
    }

    /// The peer asks to slow down: its round-trip time grows (type 4, which libudt 4.11 obeys but never sends). Whether this
    /// controller has dealt with it; otherwise the transport sends one ninth slower until the controller decides anew.
    /// Anybody on the path can forge it.
    fn on_warning(&mut self, path: &Path, control: &mut Control) -> bool {
        let _ = (path, control);
        false
    }

    /// A SYN interval (10 ms) is over in which data was sent or outstanding, on a transport that keeps a timer for it, as that
    /// of the 2004 paper does. On UDT4 it is never called, and acknowledgements stand for it.
    fn on_syn(&mut self, path: &Path, control: &mut Control) {
        let _ = (path, control);
    }

    /// Data packets left, retransmissions included; called once per burst, and only if
    /// [`wants_packets`](Controller::wants_packets) says so.
    fn on_sent(&mut self, path: &Path, sent: &SentEvent, control: &mut Control) {
        let _ = (path, sent, control);
    }

    /// Data packets arrived, duplicates included; called once per receive batch, and only if
    /// [`wants_packets`](Controller::wants_packets) says so.
    fn on_received(&mut self, path: &Path, received: &ReceivedEvent, control: &mut Control) {
        let _ = (path, received, control);
    }

    /// A user-defined control packet (type 0x7FFF) arrived; only if [`wants_custom_messages`](Controller::wants_custom_messages).
    fn on_custom_message(&mut self, path: &Path, kind: u16, body: &[u8], control: &mut Control) {
        let _ = (path, kind, body, control);
    }

    /// The connection is over.
    fn on_close(&mut self) {}

    /// Whether [`on_sent`](Controller::on_sent) and [`on_received`](Controller::on_received) are to be called.
    fn wants_packets(&self) -> bool {
        false
    }

    /// Whether custom control packets of the peer are to be handed in. Off by default: they are hostile input.
    fn wants_custom_messages(&self) -> bool {
        false
    }
}
