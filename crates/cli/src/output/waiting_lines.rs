//! Lines that wait for a thread to write them, in bounded memory.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most bytes that wait: the records of a server of 64 sessions for some minutes.
const MOST: usize = 4 << 20;

/// A line with its end.
pub(super) struct Line {
    pub(super) text: String,
    /// Its loss is a failure of the program.
    pub(super) is_needed: bool,
}

/// Lines in order.
#[derive(Default)]
pub(super) struct WaitingLines {
    state: Mutex<LineState>,
    /// There are lines.
    more: Condvar,
    /// All lines are written.
    written: Condvar,
}

#[derive(Default)]
struct LineState {
    lines: VecDeque<Line>,
    bytes: usize,
    /// Lines that were not taken since the last one that was.
    left_out: u64,
    is_writing: bool,
    /// The reader has once not taken them in time.
    is_given_up: bool,
}

impl LineState {
    fn is_idle(&self) -> bool {
        self.lines.is_empty() && self.left_out == 0 && !self.is_writing
    }
}

impl WaitingLines {
    fn state(&self) -> MutexGuard<'_, LineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a line, or counts it as left out.
    pub(super) fn put(&self, line: Line) {
        let mut state = self.state();
        // A gap is told before anything that follows it.
        if state.left_out > 0 || state.bytes + line.text.len() > MOST {
            state.left_out += 1;
            return;
        }
        state.bytes += line.text.len();
        state.lines.push_back(line);
        drop(state);
        self.more.notify_one();
    }

    /// Writes the lines, for ever. `left_out` makes the line that tells the number of those that were left out.
    pub(super) fn write_each(&self, left_out: fn(u64) -> String, write: impl Fn(&Line)) -> ! {
        let mut state = self.state();
        loop {
            let line = match state.lines.pop_front() {
                Some(line) => {
                    state.bytes -= line.text.len();
                    line
                }
                None if state.left_out > 0 => {
                    Line { text: left_out(std::mem::take(&mut state.left_out)), is_needed: true }
                }
                None => {
                    self.written.notify_all();
                    state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
            };
            state.is_writing = true;
            drop(state);
            write(&line);
            state = self.state();
            state.is_writing = false;
        }
    }

    /// Waits until all lines are written, but no longer than this, and not again for a reader that has not taken them.
    pub(super) fn wait_until_written(&self, longest: Duration) {
        let waits = |state: &mut LineState| !state.is_idle() && !state.is_given_up;
        let waited = self.written.wait_timeout_while(self.state(), longest, waits);
        let (mut state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_given_up |= timeout.timed_out();
    }
}
