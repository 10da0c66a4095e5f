//! UDT as Farhaul runs it by default: the native law of UDT4 (paper:udt-2007, `udt_native.rs`).
//!
//! Equations and symbols: `udt_native.rs`, `flow_control.rs`, `daimd.rs`.
//!
//! Departures: those of `udt_native.rs`; none of its own yet.

use super::udt_native::UdtNative;
use crate::{AckEvent, Control, Controller, LossEvent, Path, TimeoutEvent};

/// The default controller, `udt`.
#[derive(Clone, Debug)]
pub(crate) struct Udt {
    /// UDT4's law.
    native: UdtNative,
}

impl Udt {
    /// The law of a new connection; all its randomness follows from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self { native: UdtNative::new(seed) }
    }
}

impl Controller for Udt {
    fn name(&self) -> &str {
        "udt"
    }

    fn on_connect(&mut self, path: &Path, control: &mut Control) {
        self.native.on_connect(path, control);
    }

    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) {
        self.native.on_ack(path, ack, control);
    }

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        self.native.on_loss(path, loss, control);
    }

    fn on_timeout(&mut self, path: &Path, timeout: &TimeoutEvent, control: &mut Control) {
        self.native.on_timeout(path, timeout, control);
    }
}
