//! Distinguishable packets for tests, and a driver that calls at exactly the right instants.

use farhaul_units::{Instant, Rng};

use crate::{Element, FULL_PACKET, Packet, WireLen};

/// A full packet with a number, as cheap as a simulator's handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbered {
    pub(crate) number: u32,
    pub(crate) bytes: u32,
    pub(crate) damaged: bool,
}

impl Numbered {
    pub(crate) fn new(number: u32) -> Self {
        Self { number, bytes: FULL_PACKET, damaged: false }
    }
}

impl WireLen for Numbered {
    fn wire_len(&self) -> u32 {
        self.bytes
    }
}

impl Packet for Numbered {
    fn duplicate(&self) -> Self {
        *self
    }

    fn corrupt(&mut self, _rng: &mut Rng) {
        self.damaged = true;
    }
}

/// All packets that come out up to `end`, with their instants.
pub(crate) fn pop_until(element: &mut impl Element<Numbered>, end: Instant) -> Vec<(Instant, Numbered)> {
    let mut out = Vec::new();
    while let Some(due) = element.next_event().filter(|due| *due <= end) {
        while let Some(packet) = element.pop(due) {
            out.push((due, packet));
        }
        assert!(element.next_event().is_none_or(|next| next > due), "no event is left at {due}");
    }
    out
}

/// All packets that are still inside, with their instants.
pub(crate) fn drain(element: &mut impl Element<Numbered>) -> Vec<(Instant, Numbered)> {
    pop_until(element, Instant::FAR_FUTURE)
}

/// Pushes packets 0..`count`, one every `period` nanoseconds, and collects the output.
pub(crate) fn play(element: &mut impl Element<Numbered>, count: u32, period: u64) -> Vec<(Instant, Numbered)> {
    let mut out = Vec::new();
    for number in 0..count {
        let now = Instant::from_nanos(u64::from(number) * period);
        out.extend(pop_until(element, now));
        element.push(now, Numbered::new(number));
    }
    out.extend(drain(element));
    out
}

/// The packet numbers alone.
pub(crate) fn numbers(out: &[(Instant, Numbered)]) -> Vec<u32> {
    out.iter().map(|(_, packet)| packet.number).collect()
}
