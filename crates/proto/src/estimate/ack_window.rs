//! Acknowledgements that wait for their confirmation (ACK2), which makes a round-trip sample.

use farhaul_units::{AckNo, Duration, Instant, SeqNo};

/// Acknowledgements remembered: ten seconds of them at one per SYN. Source: libudt 4.11.
const WINDOW: usize = 1024;

/// The history of sent acknowledgements, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct AckWindow {
    /// Grows with the first acknowledgements to its full size: an idle connection holds none.
    sent: Vec<Option<Sent>>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    number: AckNo,
    seq: SeqNo,
    at: Instant,
}

impl AckWindow {
    /// Acknowledgement `number` of everything before `seq` left.
    pub(crate) fn sent(&mut self, number: AckNo, seq: SeqNo, at: Instant) {
        let slot = number.value() as usize % WINDOW;
        if slot >= self.sent.len() {
            self.sent.resize(slot + 1, None);
        }
        self.sent[slot] = Some(Sent { number, seq, at });
    }

    /// It was confirmed: what it acknowledged, and the round-trip time. `None` for numbers that were never sent, are
    /// too old, or were confirmed before.
    pub(crate) fn confirm(&mut self, number: AckNo, now: Instant) -> Option<(SeqNo, Duration)> {
        let slot = self.sent.get_mut(number.value() as usize % WINDOW)?;
        let Sent { seq, at, .. } = slot.take_if(|sent| sent.number == number)?;
        Some((seq, now - at))
    }

    pub(crate) fn memory(&self) -> usize {
        self.sent.capacity() * size_of::<Option<Sent>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_acknowledgement_gives_one_sample() {
        let mut window = AckWindow::default();
        let later = Instant::ZERO + Duration::from_millis(30);
        window.sent(AckNo::new(1), SeqNo::new(50), Instant::ZERO);
        assert_eq!(window.confirm(AckNo::new(2), later), None);
        assert_eq!(window.confirm(AckNo::new(1), later), Some((SeqNo::new(50), Duration::from_millis(30))));
        assert_eq!(window.confirm(AckNo::new(1), later), None);
    }

    #[test]
    fn a_number_that_was_overwritten_is_unknown() {
        let mut window = AckWindow::default();
        window.sent(AckNo::new(5), SeqNo::new(50), Instant::ZERO);
        window.sent(AckNo::new(5 + WINDOW as u32), SeqNo::new(60), Instant::ZERO);
        assert_eq!(window.confirm(AckNo::new(5), Instant::ZERO), None);
    }
}
