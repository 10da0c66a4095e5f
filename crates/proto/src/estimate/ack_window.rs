//! Acknowledgements that wait for their confirmation (ACK2), which gives an RTT sample.

use farhaul_units::{AckNo, Instant, SeqNo};

/// Acknowledgements remembered: ten seconds of them at one per SYN interval. Source: libudt 4.11.
const WINDOW: usize = 1024;

/// The history of sent acknowledgements, by number.
#[derive(Clone, Debug, Default)]
pub struct AckWindow {
    /// Grows with the first acknowledgements to its full size, so an idle connection holds none.
    sent: Vec<Option<Sent>>,
    /// When the newest one left that was confirmed.
    confirmed: Option<Instant>,
}

/// The content of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The number of the acknowledgement.
    pub number: AckNo,
    /// Everything before this packet has arrived.
    pub seq: SeqNo,
    /// First packet beyond the window.
    pub end: SeqNo,
    /// Send time.
    pub at: Instant,
}

impl AckWindow {
    /// Stores an acknowledgement that was sent.
    pub fn sent(&mut self, sent: Sent) {
        let slot = sent.number.value() as usize % WINDOW;
        if slot >= self.sent.len() {
            self.sent.resize(slot + 1, None);
        }
        self.sent[slot] = Some(sent);
    }

    /// The content of a confirmed acknowledgement. `None` for numbers that are too old, never sent, or confirmed before, and
    /// for numbers older than a confirmed one. A peer confirms at once, so an old number would forge any RTT (attack B9).
    pub fn confirm(&mut self, number: AckNo) -> Option<Sent> {
        let confirmed = self.confirmed;
        let slot = self.sent.get_mut(number.value() as usize % WINDOW)?;
        let is_news = |sent: &Sent| sent.number == number && confirmed.is_none_or(|newest| sent.at >= newest);
        let sent = slot.take_if(|sent| is_news(sent))?;
        self.confirmed = Some(sent.at);
        Some(sent)
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.sent.capacity() * size_of::<Option<Sent>>()
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::Duration;

    use super::*;

    fn ack(number: u32, seq: u32) -> Sent {
        Sent { number: AckNo::new(number), seq: SeqNo::new(seq), end: SeqNo::new(seq + 100), at: Instant::ZERO }
    }

    #[test]
    fn each_acknowledgement_is_confirmed_once() {
        let mut window = AckWindow::default();
        window.sent(ack(1, 50));
        assert_eq!(window.confirm(AckNo::new(2)), None);
        assert_eq!(window.confirm(AckNo::new(1)), Some(ack(1, 50)));
        assert_eq!(window.confirm(AckNo::new(1)), None);
    }

    #[test]
    fn one_that_left_before_the_last_confirmed_one_is_no_round_trip_any_more() {
        let mut window = AckWindow::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        for (number, millis) in [(1, 0), (2, 10), (3, 20)] {
            window.sent(Sent { at: at(millis), ..ack(number, 50 + number) });
        }
        assert_eq!(window.confirm(AckNo::new(2)).map(|sent| sent.at), Some(at(10)));
        assert_eq!(window.confirm(AckNo::new(1)), None);
        assert_eq!(window.confirm(AckNo::new(3)).map(|sent| sent.at), Some(at(20)));
    }

    #[test]
    fn a_number_that_was_overwritten_is_unknown() {
        let mut window = AckWindow::default();
        window.sent(ack(5, 50));
        window.sent(ack(5 + WINDOW as u32, 60));
        assert_eq!(window.confirm(AckNo::new(5)), None);
    }
}
