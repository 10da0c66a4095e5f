//! Competition, (7): CUBIC's window beside flows that fill the queue.

use farhaul_units::Duration;

use super::constants::{MEMORY, PATIENCE, loop_time, slowest};
use super::state::{Answer, Union, UnionPhase};
use crate::controller::Path;
use crate::model::competition::CubicWindow;
use crate::window::cubic;

impl Union {
    /// Begins to compete, (7), from `rate`.
    pub(super) fn compete(&mut self, rate: f64, path: &Path) {
        let base = rate * self.round_trip(path);
        let origin = self.others.window(path.now).map_or(base, |cubic| cubic.origin.max(base));
        self.phase = UnionPhase::Compete(CubicWindow { began: path.now, origin, base });
        self.losses.restart(path);
    }

    /// Competes on, looks for flows of this law once a second, or ends because the queue has gone.
    pub(super) fn after_competing(&mut self, cubic: CubicWindow, lost: bool, path: &Path) {
        let rtt = self.round_trip(path);
        self.rate = (cubic.at(path.now, rtt) / rtt).max(slowest(path));
        if !self.queue.stands() {
            // A queue that has gone without a loss has room for all.
            if path.now < self.others.until {
                self.rate *= cubic::BETA;
                self.others.cut = Some(cubic.cut(path.now, rtt));
            }
            self.answer = Answer::default();
            self.resume(path);
        } else if (path.now - cubic.began).as_secs_f64() < loop_time(path) {
            self.losses.restart(path);
        } else if lost {
            self.others.until = path.now + MEMORY;
            let cubic = cubic.cut(path.now, rtt);
            self.others.cut = Some(cubic);
            self.losses.restart(path);
            if path.now < self.others.next_search {
                self.phase = UnionPhase::Compete(cubic);
                return;
            }
            // Flows of this law do not fill a queue. If all that lost drain now, they find each other.
            self.others.next_search = path.now + Duration::from_secs_f64(PATIENCE);
            let base = cubic.base / rtt;
            self.phase = UnionPhase::Drain(self.drain(base, path));
        }
    }
}
