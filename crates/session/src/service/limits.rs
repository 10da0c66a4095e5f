//! How much a client may ask at a time, and what both sides may add.

use crate::capabilities::Capabilities;

/// Most requests of a client that have no answer yet. With 1 MiB each, this many reads fill a path of 10 Gbit/s and 100 ms.
pub const MAX_REQUESTS: usize = 128;
/// Most puts of a client at a time. Each has a file and its directory open on the server. A few would hide the time of its disk, but
/// programs hold files open while they write others.
pub const MAX_PUTS: usize = 32;
/// The same with a server that does not offer [`Capabilities::MANY_PUTS`].
pub(super) const FEW_PUTS: usize = 8;
/// What both sides may add to answers, and what a server takes.
pub(super) const OFFERED: Capabilities =
    Capabilities::OWNERS.and(Capabilities::CHANGE_TIMES).and(Capabilities::MANY_PUTS);
