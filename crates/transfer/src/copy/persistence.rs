//! A copy whose connection was lost, or whose server is busy: when it begins anew, and when it gives up.

use std::thread;
use std::time::Duration;

use farhaul_session::CHUNK_LEN;
use farhaul_units::Instant;

use crate::environment::Environment;
use crate::error::{Code, Error};
use crate::event::Event;
use crate::report::{Report, goodput};
use crate::text::time;

/// The pause before the first new attempt: a program that restarts, or the other side, which notices a little later.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// The longest pause. Somebody who waits for a path to come back does not wait much longer than it does.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A pause ends this soon after a cancellation.
const LOOK: Duration = Duration::from_millis(50);

/// The attempts of one copy.
pub(super) struct Persistence {
    /// Time without progress after which it gives up.
    give_up: Duration,
    lost: Option<Lost>,
    /// The furthest that an attempt has come.
    furthest: AttemptProgress,
}

/// How far an attempt has come, what it found there included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AttemptProgress {
    files: u64,
    bytes: u64,
}

impl AttemptProgress {
    pub(super) fn of(report: &Report) -> Self {
        let sum = |all: &[Option<u64>]| all.iter().flatten().fold(0, |sum: u64, next| sum.saturating_add(*next));
        Self {
            files: sum(&[report.files, report.kept]),
            bytes: sum(&[report.moved_bytes, report.spared_bytes, report.kept_bytes]),
        }
    }

    /// Whether an attempt that came so far has brought the copy forward. A chunk that was under way comes again.
    const fn is_beyond(self, other: Self) -> bool {
        self.files > other.files || self.bytes > other.bytes.saturating_add(CHUNK_LEN)
    }
}

/// A connection that was lost.
struct Lost {
    at: Instant,
    error: Error,
    pause: Duration,
}

impl Persistence {
    pub(super) const fn new(give_up: Duration) -> Self {
        Self { give_up, lost: None, furthest: AttemptProgress { files: 0, bytes: 0 } }
    }

    /// Judges the end of an attempt, which came so far: the pause until the next one, or the error with which the copy fails.
    fn judge(&mut self, now: Instant, error: Error, progress: AttemptProgress) -> Result<Duration, Error> {
        let progressed = progress.is_beyond(self.furthest);
        if progressed {
            self.furthest = progress;
        }
        let is_lost = match error.code {
            Code::PeerLost | Code::Busy => progressed || self.lost.is_none(),
            // Ssh was lost in the middle, and did not fail to log in.
            Code::SshFailed => progressed,
            _ => false,
        };
        if is_lost {
            if self.give_up.is_zero() {
                return Err(error);
            }
            let pause = FIRST_PAUSE.min(self.give_up);
            self.lost = Some(Lost { at: now, error, pause });
            return Ok(pause);
        }
        let Some(lost) = self.lost.as_mut().filter(|_| may_pass(error.code)) else { return Err(error) };
        let left = self.give_up.saturating_sub(now.saturating_since(lost.at));
        if left.is_zero() {
            let message = format!("{}; no progress for {}: {}", lost.error.message, time(self.give_up), error.message);
            return Err(Error::new(lost.error.code, message).remedy("the same command goes on where it ended"));
        }
        lost.pause = (lost.pause * 2).min(LONGEST_PAUSE).min(left);
        Ok(lost.pause)
    }

    /// Waits for the next attempt.
    ///
    /// # Errors
    /// There is none: with the error of the copy.
    pub(super) fn wait(
        &mut self,
        environment: &Environment,
        error: Error,
        progress: AttemptProgress,
    ) -> Result<(), Error> {
        let reason = error.message.clone();
        let pause = self.judge(environment.clock.now(), error, progress)?;
        environment.events.send(&Event::Retrying(pause));
        let (again, most) = (time(pause), time(self.give_up));
        environment.events.warn(&format!("{reason}; the next attempt follows in {again} (‹give-up› {most})"));
        let due = environment.clock.now() + pause;
        while environment.clock.now() < due && !environment.cancellation.is_requested() {
            thread::park_timeout(LOOK);
        }
        environment.cancellation.reason().map_or(Ok(()), Err)
    }
}

/// Whether the reason for which no connection was made may pass by itself.
const fn may_pass(code: Code) -> bool {
    matches!(
        code,
        Code::PeerLost
            | Code::IdleTimeout
            | Code::Busy
            | Code::ConnectTimeout
            | Code::PeerRefused
            | Code::UdpBlocked
            | Code::NameUnresolved
            | Code::NoRoute
            | Code::SshFailed
    )
}

impl Report {
    /// Adds what the attempts before this one did. What they had brought counts as copied, and not as there already.
    pub(super) fn add_earlier(&mut self, earlier: &Self, elapsed: Duration) {
        let sum = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other.unwrap_or(0)));
        let less = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_sub(other.unwrap_or(0)));
        self.kept = less(self.kept, earlier.files);
        self.kept_bytes = less(self.kept_bytes, Some(earlier.bytes));
        self.spared_bytes = less(self.spared_bytes, earlier.moved_bytes);
        self.bytes = self.bytes.saturating_add(earlier.bytes);
        self.files = sum(self.files, earlier.files);
        self.links = sum(self.links, earlier.links);
        self.deleted = sum(self.deleted, earlier.deleted);
        self.moved_bytes = sum(self.moved_bytes, earlier.moved_bytes);
        self.repaired_chunks = sum(self.repaired_chunks, earlier.repaired_chunks);
        self.packets_sent = self.packets_sent.saturating_add(earlier.packets_sent);
        self.packets_retransmitted = self.packets_retransmitted.saturating_add(earlier.packets_retransmitted);
        self.packets_received = self.packets_received.saturating_add(earlier.packets_received);
        self.seconds = elapsed.as_secs_f64();
        self.goodput_bps = goodput(self.bytes, elapsed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn error(code: Code) -> Error {
        Error::new(code, format!("it was {}", code.symbol()))
    }

    fn progress(files: u64) -> AttemptProgress {
        AttemptProgress { files, bytes: 0 }
    }

    #[test]
    fn a_part_of_one_file_is_progress_if_it_is_more_than_the_chunk_under_way() {
        let part = |bytes| AttemptProgress { files: 0, bytes };
        assert!(part(5 * CHUNK_LEN).is_beyond(part(3 * CHUNK_LEN)));
        assert!(!part(5 * CHUNK_LEN).is_beyond(part(4 * CHUNK_LEN)));
    }

    #[test]
    fn a_copy_begins_anew_until_it_made_no_progress_for_too_long() {
        let mut persistence = Persistence::new(Duration::from_secs(60));
        let mut judge = |seconds, code, files| persistence.judge(at(seconds), error(code), progress(files));
        assert_eq!(judge(0, Code::PeerLost, 3), Ok(FIRST_PAUSE));
        assert_eq!(judge(7, Code::ConnectTimeout, 0), Ok(FIRST_PAUSE * 2));
        assert_eq!(judge(16, Code::SshFailed, 0), Ok(FIRST_PAUSE * 4));
        // It was there again, and broke off at the same file.
        assert_eq!(judge(30, Code::PeerLost, 3), Ok(FIRST_PAUSE * 8));
        assert_eq!(judge(55, Code::ConnectTimeout, 0), Ok(Duration::from_secs(5)), "until the end");
        let failed = judge(60, Code::ConnectTimeout, 0).unwrap_err();
        assert_eq!(failed.code, Code::PeerLost);
        assert!(failed.message.contains("PEER_LOST") && failed.message.contains("CONNECT_TIMEOUT"), "{failed}");
        assert!(failed.remedy.is_some());
    }

    #[test]
    fn progress_begins_the_time_anew_and_other_failures_end_it() {
        let mut persistence = Persistence::new(Duration::from_secs(60));
        let mut judge = |seconds, code, files| persistence.judge(at(seconds), error(code), progress(files));
        assert_eq!(judge(0, Code::ConnectTimeout, 0).unwrap_err().code, Code::ConnectTimeout, "it never was there");
        assert_eq!(judge(1, Code::PeerLost, 1), Ok(FIRST_PAUSE));
        assert_eq!(judge(50, Code::PeerLost, 2), Ok(FIRST_PAUSE));
        assert_eq!(judge(100, Code::ConnectTimeout, 0), Ok(FIRST_PAUSE * 2));
        assert_eq!(judge(105, Code::SshFailed, 3), Ok(FIRST_PAUSE));
        assert_eq!(judge(110, Code::DiskFull, 3).unwrap_err().code, Code::DiskFull);
        let mut busy = Persistence::new(Duration::from_secs(60));
        assert_eq!(busy.judge(at(0), error(Code::Busy), progress(0)), Ok(FIRST_PAUSE), "somebody is there");
        assert_eq!(busy.judge(at(60), error(Code::Busy), progress(0)).unwrap_err().code, Code::Busy);
        let mut none = Persistence::new(Duration::ZERO);
        assert_eq!(none.judge(at(0), error(Code::PeerLost), progress(1)).unwrap_err(), error(Code::PeerLost));
    }

    #[test]
    fn the_report_is_that_of_all_attempts() {
        let earlier = Report {
            bytes: 100,
            files: Some(2),
            kept: Some(1),
            kept_bytes: Some(7),
            moved_bytes: Some(150),
            spared_bytes: Some(7),
            packets_sent: 5,
            ..Report::default()
        };
        // Of the third file, 50 bytes were there, and the two of the first attempt as well.
        let mut last = Report {
            bytes: 80,
            files: Some(1),
            kept: Some(3),
            kept_bytes: Some(107),
            moved_bytes: Some(30),
            spared_bytes: Some(157),
            packets_sent: 3,
            ..Report::default()
        };
        last.add_earlier(&earlier, Duration::from_secs(2));
        assert_eq!((last.bytes, last.files, last.kept, last.kept_bytes), (180, Some(3), Some(1), Some(7)));
        assert_eq!((last.moved_bytes, last.spared_bytes, last.packets_sent), (Some(180), Some(7), 8));
        assert_eq!((last.seconds, last.goodput_bps), (2.0, Some(720)));
    }
}
