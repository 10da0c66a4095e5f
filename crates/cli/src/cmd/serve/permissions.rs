//! What a client may do here: the paths, and the caps of its key.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use farhaul::security::{Grant, PublicKey};
use farhaul_session::{AbortCode, FailCode, Failure, RelPath};
use farhaul_udp::Clock;
use farhaul_units::{Instant, Rate};

use crate::trust::Rights;

/// Sleep between two portions of data under a cap of the rate.
const SLEEP: Duration = Duration::from_millis(100);
/// Smallest portion, bytes.
const LEAST_PORTION: usize = 1024;

const NO_WRITE: &str = "your key may not write there: its line in authorized_keys needs path=DIR,write";

/// The permissions of all clients of a server.
#[derive(Debug)]
pub(super) struct Permissions {
    /// The root without links in its path.
    root: PathBuf,
    read_only: bool,
    usages: Mutex<BTreeMap<PublicKey, Arc<Mutex<Usage>>>>,
    /// The sessions of all plain clients, of whom nobody can be told from another one.
    plain: Arc<Mutex<Usage>>,
    /// Those of all keys that stand in no file, for the same reason.
    unlisted: Arc<Mutex<Usage>>,
    /// Cap of the rate of the latter.
    unlisted_rate: Rate,
}

/// The running sessions of a key, or of a kind of clients.
#[derive(Debug, Default)]
struct Usage {
    sessions: u32,
    /// When the next byte may be moved.
    free_at: Option<Instant>,
}

/// Why a request is refused.
pub(super) type Refused = (AbortCode, String);

impl Permissions {
    /// The permissions below `root`. Keys that stand in no file share `unlisted_rate`.
    pub(super) fn new(root: &Path, read_only: bool, unlisted_rate: Rate) -> io::Result<Self> {
        Ok(Self::below(root.canonicalize()?, read_only, unlisted_rate))
    }

    fn below(root: PathBuf, read_only: bool, unlisted_rate: Rate) -> Self {
        let (plain, unlisted) = (Arc::default(), Arc::default());
        Self { root, read_only, usages: Mutex::default(), plain, unlisted, unlisted_rate }
    }

    /// The root without links in its path.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Begins a session that writes to `target`.
    pub(super) fn writes(&self, rights: &Rights, target: &RelPath) -> Result<Permit, Refused> {
        if self.read_only {
            return Err(refused("this server is read-only"));
        }
        match rights {
            Rights::All => Ok(Permit::default()),
            Rights::None => Err(refused("your key is not admitted any more")),
            Rights::Plain { write: false, .. } => Err(refused(
                "plain clients may only read here: connect without --plain, or the daemon's file needs write = true in [plain]",
            )),
            Rights::Plain { rate, .. } => Ok(begin_shared(&self.plain, *rate)),
            Rights::Unlisted => Err(refused(NO_WRITE)),
            Rights::Granted(grant) => {
                let allowed = grant.paths.iter().any(|path| path.write && self.is_within(&path.path, target));
                if !allowed {
                    return Err(refused(NO_WRITE));
                }
                self.begin(grant)
            }
        }
    }

    /// Begins a session that reads `paths`.
    pub(super) fn reads(&self, rights: &Rights, paths: &[RelPath]) -> Result<Permit, Refused> {
        self.may_read(rights, paths.iter().cloned())?;
        match rights {
            Rights::Granted(grant) => self.begin(grant),
            Rights::Plain { rate, .. } => Ok(begin_shared(&self.plain, *rate)),
            Rights::Unlisted => Ok(begin_shared(&self.unlisted, self.unlisted_rate)),
            Rights::All | Rights::None => Ok(Permit::default()),
        }
    }

    /// Whether all of these paths may be read.
    pub(super) fn may_read(&self, rights: &Rights, mut paths: impl Iterator<Item = RelPath>) -> Result<(), Refused> {
        match rights {
            Rights::All | Rights::Plain { .. } | Rights::Unlisted => Ok(()),
            Rights::None => Err(refused("your key is not admitted any more")),
            Rights::Granted(grant) if grant.paths.is_empty() => Ok(()),
            Rights::Granted(grant) => {
                let readable: Vec<PathBuf> = grant.paths.iter().map(|path| real(&path.path)).collect();
                match paths.all(|path| readable.iter().any(|directory| self.at(&path).starts_with(directory))) {
                    true => Ok(()),
                    false => Err(refused("your key may not read there: its line in authorized_keys names other paths")),
                }
            }
        }
    }

    /// Whether `path`, below the root, is `directory` or below it. Nothing below the root is reached through a link.
    fn is_within(&self, directory: &Path, path: &RelPath) -> bool {
        self.at(path).starts_with(real(directory))
    }

    /// The place of a path below the root.
    fn at(&self, path: &RelPath) -> PathBuf {
        self.root.join(OsStr::from_bytes(&path.to_bytes()))
    }

    fn begin(&self, grant: &Grant) -> Result<Permit, Refused> {
        let mut usages = self.usages.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody holds the usage of a key without sessions.
        usages.retain(|_, usage| Arc::strong_count(usage) > 1);
        let usage = Arc::clone(usages.entry(grant.key).or_default());
        drop(usages);
        let mut held = usage.lock().unwrap_or_else(PoisonError::into_inner);
        if grant.sessions.is_some_and(|most| held.sessions >= most) {
            return Err((
                AbortCode::Busy,
                "as many sessions as your key is allowed are running; try again later".into(),
            ));
        }
        held.sessions += 1;
        drop(held);
        Ok(Permit { usage: Some(usage), rate: grant.rate, bytes: grant.bytes })
    }
}

/// Begins a session of clients that share everything.
fn begin_shared(usage: &Arc<Mutex<Usage>>, rate: Rate) -> Permit {
    let usage = Arc::clone(usage);
    usage.lock().unwrap_or_else(PoisonError::into_inner).sessions += 1;
    Permit { usage: Some(usage), rate: Some(rate), bytes: None }
}

/// A directory of a line without links in its path. One that does not exist has none.
fn real(directory: &Path) -> PathBuf {
    directory.canonicalize().unwrap_or_else(|_| directory.to_owned())
}

fn refused(why: &str) -> Refused {
    (AbortCode::Refused, why.to_owned())
}

/// A running session, and its caps.
#[derive(Debug, Default)]
pub(super) struct Permit {
    usage: Option<Arc<Mutex<Usage>>>,
    rate: Option<Rate>,
    /// Bytes that may still be moved.
    bytes: Option<u64>,
}

impl Permit {
    /// Bytes to move at once, so that sleeps are short.
    pub(super) fn portion(&self) -> usize {
        self.rate
            .map_or(usize::MAX, |rate| usize::try_from(rate.bytes_in(SLEEP)).unwrap_or(usize::MAX).max(LEAST_PORTION))
    }

    /// Counts bytes that are to be moved, and waits for as long as the rate gives them. So the last of them move no earlier than
    /// at the rate, however many come at once.
    pub(super) fn charge(&mut self, bytes: usize, clock: Clock) -> Result<(), Failure> {
        let bytes = bytes as u64;
        if let Some(left) = &mut self.bytes {
            *left = left.checked_sub(bytes).ok_or_else(|| {
                Failure::new(FailCode::GivenUp, "a session of your key may move no more bytes: its line has bytes=SIZE")
            })?;
        }
        let Some((rate, usage)) = self.rate.zip(self.usage.as_ref()) else { return Ok(()) };
        let mut usage = usage.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock.now();
        let turn = usage.free_at.map_or(now, |at| at.max(now)) + rate.time_for(bytes);
        usage.free_at = Some(turn);
        drop(usage);
        loop {
            let left = turn.saturating_since(clock.now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::park_timeout(left);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(usage) = &self.usage {
            usage.lock().unwrap_or_else(PoisonError::into_inner).sessions -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use farhaul::security::AuthorizedKeys;

    use super::*;

    fn granted(options: &str) -> Rights {
        let key = PublicKey::from_bytes([7; 32]);
        Rights::Granted(AuthorizedKeys::parse(&format!("{key} alice {options}")).unwrap().grants()[0].clone())
    }

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    fn permissions() -> Permissions {
        Permissions::below("/srv".into(), false, Rate::from_megabits_per_second(8))
    }

    #[test]
    fn a_key_writes_only_where_its_line_says_so() {
        let permissions = permissions();
        assert!(permissions.writes(&Rights::All, &path("anywhere")).is_ok());
        let alice = granted("path=/srv/in,write path=/srv/out");
        for (target, may) in [("in", true), ("in/deep", true), ("out", false), ("inner", false), ("", false)] {
            assert_eq!(permissions.writes(&alice, &path(target)).is_ok(), may, "{target}");
        }
        assert_eq!(permissions.writes(&granted(""), &path("in")).unwrap_err().0, AbortCode::Refused);
        assert!(permissions.writes(&Rights::None, &path("in")).is_err());
    }

    #[test]
    fn a_key_reads_its_paths_or_without_any_the_whole_root() {
        let permissions = permissions();
        let alice = granted("path=/srv/in,write path=/srv/out");
        assert!(permissions.reads(&alice, &[path("in/a"), path("out")]).is_ok());
        assert!(permissions.reads(&alice, &[path("in/a"), path("other")]).is_err(), "every path counts");
        assert!(permissions.reads(&granted(""), &[path("other"), RelPath::root()]).is_ok());
        assert!(permissions.reads(&Rights::None, &[path("in")]).is_err());
    }

    #[test]
    fn plain_clients_read_and_write_only_if_they_may() {
        let (permissions, rate) = (permissions(), Rate::from_megabits_per_second(8));
        let rights = |write| Rights::Plain { write, rate };
        assert_eq!(permissions.writes(&rights(false), &path("in")).unwrap_err().0, AbortCode::Refused);
        assert!(permissions.writes(&rights(true), &path("in")).is_ok());
        assert!(permissions.reads(&rights(false), &[path("in"), RelPath::root()]).is_ok());
        let read_only = Permissions { read_only: true, ..permissions };
        assert!(read_only.writes(&rights(true), &path("in")).is_err());
    }

    #[test]
    fn an_unlisted_key_may_do_what_a_line_without_options_grants() {
        let permissions = permissions();
        for target in ["", "in"].map(path) {
            let refused = permissions.writes(&granted(""), &target).unwrap_err();
            assert_eq!(permissions.writes(&Rights::Unlisted, &target).unwrap_err(), refused);
        }
        for rights in [granted(""), Rights::Unlisted] {
            assert!(permissions.reads(&rights, &[path("in"), RelPath::root()]).is_ok());
        }
    }

    #[test]
    fn clients_that_nobody_can_tell_apart_share_one_cap() {
        let (permissions, clock) = (permissions(), Clock::start());
        let plain = Rights::Plain { write: false, rate: Rate::from_megabits_per_second(8) };
        for rights in [plain, Rights::Unlisted] {
            let mut permits = [(); 2].map(|()| permissions.reads(&rights, &[]).unwrap());
            let began = clock.now();
            for turn in 0..11 {
                permits[turn % 2].charge(5_000, clock).unwrap();
            }
            assert!(clock.now() - began >= Duration::from_millis(50), "{rights:?}");
        }
    }

    #[test]
    fn sessions_of_a_key_are_counted_until_they_end() {
        let permissions = permissions();
        let alice = granted("sessions=2");
        let first = permissions.reads(&alice, &[]).unwrap();
        let _second = permissions.reads(&alice, &[]).unwrap();
        assert_eq!(permissions.reads(&alice, &[]).unwrap_err().0, AbortCode::Busy);
        drop(first);
        assert!(permissions.reads(&alice, &[]).is_ok());
    }

    #[test]
    fn a_session_moves_no_more_than_its_bytes_and_no_faster_than_its_rate() {
        let clock = Clock::start();
        let mut permit = permissions().reads(&granted("bytes=1000B"), &[]).unwrap();
        assert!(permit.charge(1_000, clock).is_ok() && permit.charge(1, clock).is_err());
        let mut permit = permissions().reads(&granted("rate=8mbit"), &[]).unwrap();
        let began = clock.now();
        for _ in 0..11 {
            permit.charge(5_000, clock).unwrap();
        }
        assert!(clock.now() - began >= Duration::from_millis(50));
        assert_eq!(permit.portion(), 100_000);
    }
}
