//! What a daemon gives up: the capabilities of a privileged user, and that others may look into its memory.

use std::fmt::Display;

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs};

use crate::exit::{Code, Fault};

const NOTHING: CapabilitySets = CapabilitySets {
    effective: CapabilitySet::empty(),
    permitted: CapabilitySet::empty(),
    inheritable: CapabilitySet::empty(),
};

/// Gives up all capabilities of this thread, and of those that it starts from now on, for ever.
///
/// # Errors
/// The system refuses it, and the thread has some.
pub(crate) fn give_up_capabilities() -> Result<(), Fault> {
    let refused = |error: Errno| fault("give up its capabilities", &error);
    set_no_new_privs(true).map_err(refused)?;
    // A filter of system calls may forbid to give up nothing.
    if has_capabilities() { set_capabilities(None, NOTHING).map_err(refused) } else { Ok(()) }
}

/// Whether this thread has or may take any capability. A thread that cannot know may have some.
pub(crate) fn has_capabilities() -> bool {
    capabilities(None).map_or(true, |sets| !(sets.effective | sets.permitted).is_empty())
}

/// Hides the memory of this process from other processes of its user, and from core dumps.
///
/// # Errors
/// The system refuses it.
pub(crate) fn hide_memory() -> Result<(), Fault> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|error| fault("hide its memory", &error))
}

fn fault(what: &str, error: &dyn Display) -> Fault {
    Fault::new(Code::Failed, format!("this server cannot {what}: {error}; --unconfined leaves it out"))
}
