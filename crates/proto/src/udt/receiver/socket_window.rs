//! The window of a receiver whose socket has overflowed: what the socket holds.
//!
//! A program that is not scheduled takes nothing from its socket. The sender hears nothing meanwhile, and goes on. With a window of what the
//! socket's buffer holds, nothing dies there: the sender waits for the program instead, and its law sees no loss. Every sender of UDT4 obeys
//! a window, and the receiver claims nothing by it.
//!
//! That holds as long as the buffer holds more than what is on its way in an RTT. On longer paths such a window would hold data back in any
//! case, and what is on its way overflows the buffer all the same. There the window stays.

use farhaul_units::{Duration, Instant};

/// The buffer holds so many times what is on its way when the window begins …
const BEGIN: f64 = 1.25;
/// … and ends. Without the difference it would come and go, as the rate does.
const END: f64 = 1.1;
/// How long a host counts as busy after its buffer has overflowed.
const MEMORY: Duration = Duration::from_secs(10);
/// Least window, packets: two acknowledgements by count.
const LEAST: u32 = 128;

/// The bound of the window, if the socket's buffer has overflowed of late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SocketWindow {
    /// Until when it holds, and its packets.
    present: Option<(Instant, u32)>,
}

impl SocketWindow {
    /// The buffer of so many packets has overflowed. So many are `on_their_way`, if that is known.
    pub(super) fn begin(&mut self, now: Instant, packets: u64, on_their_way: Option<f64>) {
        let holds = on_their_way.is_some_and(|on_their_way| BEGIN * on_their_way <= packets as f64);
        let window = u32::try_from(packets).unwrap_or(u32::MAX).max(LEAST);
        self.present = holds.then_some((now + MEMORY, window));
    }

    /// Ends the bound once it is old, or once so many are `on_their_way` that it would hold them back.
    pub(super) fn end_if_over(&mut self, now: Instant, on_their_way: Option<f64>) {
        let holds = |window: u32| on_their_way.is_some_and(|on_their_way| END * on_their_way <= f64::from(window));
        self.present = self.present.filter(|(until, window)| now <= *until && holds(*window));
    }

    /// The bound in packets; `None` without one.
    pub(super) fn window(&self) -> Option<u32> {
        self.present.map(|(_, window)| window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_what_the_buffer_holds_where_that_is_more_than_the_path_does() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut socket_window = SocketWindow::default();
        for (on_their_way, window) in [(None, None), (Some(900.0), None), (Some(800.0), Some(1_000))] {
            socket_window.begin(at(1), 1_000, on_their_way);
            assert_eq!(socket_window.window(), window, "{on_their_way:?}");
        }
        socket_window.end_if_over(at(11), Some(900.0));
        assert_eq!(socket_window.window(), Some(1_000));
        socket_window.end_if_over(at(11), Some(910.0));
        assert_eq!(socket_window.window(), None, "it would hold data back");
        socket_window.begin(at(20), 10, Some(5.0));
        assert_eq!(socket_window.window(), Some(LEAST));
        socket_window.end_if_over(at(31), Some(5.0));
        assert_eq!(socket_window.window(), None, "the host has had ten seconds of rest");
    }
}
