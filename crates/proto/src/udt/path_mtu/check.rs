//! A check of the packet size in use. Pairs of probes leave, one of that size and one of the base. Where only the small ones arrive, the
//! path drops the large ones because of their size.

use farhaul_units::Rng;

use super::{MAX_PROBES, Probe};

/// Pairs of one check. A path that stays silent for longer is checked anew.
const MOST_PAIRS: u32 = 64;

/// The pairs sent so far, and their replies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    size: u32,
    base: u32,
    /// The numbers of the first pair. Each later pair has the next ones.
    numbers: [u32; 2],
    pairs: u32,
    /// Whether small probes leave too. At first nothing says that large ones are lost.
    in_doubt: bool,
    /// A bit for each pair whose small probe was answered, and the same at the end of the last round.
    heard: u64,
    heard_before: u64,
    /// Rounds without a reply, in a row.
    pub(super) silent: u32,
    due: [bool; 2],
}

/// What a round has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing yet.
    Open,
    /// The path drops this size.
    TooLarge,
}

impl Check {
    pub(super) fn new(size: u32, base: u32, in_doubt: bool, rng: &mut Rng) -> Self {
        let number = rng.next_u64();
        Self {
            size,
            base,
            numbers: [(number >> 32) as u32, number as u32],
            pairs: 1,
            in_doubt,
            heard: 0,
            heard_before: 0,
            silent: 0,
            due: [true, in_doubt],
        }
    }

    pub(super) const fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// Sends pairs from now on.
    pub(super) const fn doubt(&mut self) {
        self.in_doubt = true;
        self.due[1] = true;
    }

    /// The next probe to send.
    pub(super) fn poll(&mut self) -> Option<Probe> {
        let which = self.due.iter().position(|due| *due)?;
        self.due[which] = false;
        let number = self.numbers[which].wrapping_add(self.pairs - 1);
        Some(Probe { size: [self.size, self.base][which], number })
    }

    /// A probe of the size in use was answered.
    pub(super) fn is_passed(&self, reply: Probe) -> bool {
        reply.size == self.size && self.pair(0, reply.number).is_some()
    }

    /// Notes the reply to a probe of the base.
    pub(super) fn on_reply(&mut self, reply: Probe) {
        if let Some(pair) = self.pair(1, reply.number).filter(|_| reply.size == self.base) {
            self.heard |= 1 << pair;
            self.silent = 0;
        }
    }

    fn pair(&self, which: usize, number: u32) -> Option<u32> {
        Some(number.wrapping_sub(self.numbers[which])).filter(|pair| *pair < self.pairs)
    }

    /// A round is over. A large probe counts as lost once its small one was answered before the round began.
    pub(super) fn end_round(&mut self, rng: &mut Rng) -> Verdict {
        if self.heard_before.count_ones() >= MAX_PROBES {
            return Verdict::TooLarge;
        }
        self.heard_before = self.heard;
        self.silent += 1;
        if self.pairs == MOST_PAIRS {
            *self = Self { silent: self.silent, ..Self::new(self.size, self.base, true, rng) };
        } else {
            self.in_doubt = true;
            self.pairs += 1;
            self.due = [true; 2];
        }
        Verdict::Open
    }
}
