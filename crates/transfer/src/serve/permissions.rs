//! What a client may do here: the paths, and the caps of its key.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use farhaul::security::Grant;
use farhaul_session::{AbortCode, RelPath};
use farhaul_units::Rate;

use crate::keys::{Permit, Rights, Usage, Usages};

const NOT_ADMITTED: &str = "your key is not admitted any more";
const NO_DELETE: &str = "your key may not delete there: its line in authorized_keys needs path=DIR,delete";
const NO_WRITE: &str = "your key may not write there: its line in authorized_keys needs path=DIR,write";

/// The permissions of all clients of a server.
#[derive(Debug)]
pub(crate) struct Permissions {
    /// The root without links in its path.
    root: PathBuf,
    read_only: bool,
    usages: Usages,
    /// The sessions of all plain clients, of whom nobody can be told from another one.
    plain: Usage,
    /// Those of all keys that stand in no file, for the same reason.
    unlisted: Usage,
    /// Cap of the rate of the latter.
    unlisted_rate: Rate,
}

/// Why a request is refused.
pub(crate) type Refused = (AbortCode, String);

impl Permissions {
    /// The permissions below `root`, for keys with these usages. Keys that stand in no file share `unlisted_rate`.
    pub(crate) fn new(root: &Path, read_only: bool, usages: Usages, unlisted_rate: Rate) -> io::Result<Self> {
        Ok(Self::below(root.canonicalize()?, read_only, usages, unlisted_rate))
    }

    fn below(root: PathBuf, read_only: bool, usages: Usages, unlisted_rate: Rate) -> Self {
        let (plain, unlisted) = (Usage::default(), Usage::default());
        Self { root, read_only, usages, plain, unlisted, unlisted_rate }
    }

    /// Caps the rate of all keys together that stand in no file.
    pub(crate) const fn cap_unlisted(&mut self, rate: Rate) {
        self.unlisted_rate = rate;
    }

    /// The root without links in its path.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Begins a session that writes to `target`.
    pub(crate) fn writes(&self, rights: &Rights, target: &RelPath) -> Result<Permit, Refused> {
        self.may_write(rights, target)?;
        self.begins(rights)
    }

    /// Begins a session that reads `paths`.
    pub(crate) fn reads(&self, rights: &Rights, paths: &[RelPath]) -> Result<Permit, Refused> {
        self.may_read(rights, paths.iter().cloned())?;
        self.begins(rights)
    }

    /// Begins a session whose requests are permitted one by one.
    pub(crate) fn begins(&self, rights: &Rights) -> Result<Permit, Refused> {
        match rights {
            Rights::Granted(grant) => self.begin(grant),
            Rights::Plain { rate, .. } => Ok(self.plain.begin(*rate)),
            Rights::Unlisted => Ok(self.unlisted.begin(self.unlisted_rate)),
            Rights::All => Ok(Permit::default()),
            Rights::None => Err(refused(NOT_ADMITTED)),
        }
    }

    /// Whether entries may be made at this path, and files replaced.
    pub(crate) fn may_write(&self, rights: &Rights, target: &RelPath) -> Result<(), Refused> {
        self.may_change(rights)?;
        match rights {
            Rights::Plain { write: false, .. } => Err(refused(
                "plain clients may only read here: connect without --plain, or the daemon's file needs write = true in [plain]",
            )),
            Rights::Unlisted => Err(refused(NO_WRITE)),
            Rights::Granted(grant)
                if !grant.paths.iter().any(|path| path.write && self.is_within(&path.path, target)) =>
            {
                Err(refused(NO_WRITE))
            }
            _ => Ok(()),
        }
    }

    /// Whether the entry at this path may be taken away.
    pub(crate) fn may_delete(&self, rights: &Rights, path: &RelPath) -> Result<(), Refused> {
        self.may_change(rights)?;
        match rights {
            Rights::Plain { delete: false, .. } => Err(refused(
                "plain clients may not delete here: connect without --plain, or the daemon's file needs delete = true in [plain]",
            )),
            Rights::Unlisted => Err(refused(NO_DELETE)),
            Rights::Granted(grant)
                if !grant.paths.iter().any(|granted| granted.delete && self.is_within(&granted.path, path)) =>
            {
                Err(refused(NO_DELETE))
            }
            _ => Ok(()),
        }
    }

    /// Whether anything may be changed.
    fn may_change(&self, rights: &Rights) -> Result<(), Refused> {
        match rights {
            _ if self.read_only => Err(refused("this server is read-only")),
            Rights::None => Err(refused(NOT_ADMITTED)),
            _ => Ok(()),
        }
    }

    /// Whether all of these paths may be read.
    pub(crate) fn may_read(&self, rights: &Rights, mut paths: impl Iterator<Item = RelPath>) -> Result<(), Refused> {
        match rights {
            Rights::All | Rights::Plain { .. } | Rights::Unlisted => Ok(()),
            Rights::None => Err(refused(NOT_ADMITTED)),
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
        self.usages.begin(grant).map_err(|full| (AbortCode::Busy, full.0.to_owned()))
    }
}

/// A directory of a line without links in its path. One that does not exist has none.
fn real(directory: &Path) -> PathBuf {
    directory.canonicalize().unwrap_or_else(|_| directory.to_owned())
}

fn refused(why: &str) -> Refused {
    (AbortCode::Refused, why.to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use farhaul::security::{AuthorizedKeys, PublicKey};
    use farhaul_udp::Clock;

    use super::*;

    fn granted(options: &str) -> Rights {
        let key = PublicKey::from_bytes([7; 32]);
        Rights::Granted(AuthorizedKeys::parse(&format!("{key} alice {options}")).unwrap().grants()[0].clone())
    }

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    fn permissions() -> Permissions {
        Permissions::below("/srv".into(), false, Usages::default(), Rate::from_megabits_per_second(8))
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
    fn a_key_deletes_only_where_its_line_says_so_and_nobody_on_a_read_only_server() {
        let permissions = permissions();
        let alice = granted("path=/srv/in,write path=/srv/out,delete path=/srv/all,write,delete");
        for (at, may) in
            [("in/a", false), ("out/a", true), ("out", true), ("all/deep/a", true), ("outer", false), ("", false)]
        {
            assert_eq!(permissions.may_delete(&alice, &path(at)).is_ok(), may, "{at}");
        }
        assert!(permissions.may_write(&alice, &path("out/a")).is_err(), "delete is not write");
        let rate = Rate::from_megabits_per_second(8);
        let plain = |delete| Rights::Plain { write: true, delete, rate };
        for (rights, may) in [
            (Rights::All, true),
            (plain(true), true),
            (plain(false), false),
            (Rights::Unlisted, false),
            (Rights::None, false),
        ] {
            assert_eq!(permissions.may_delete(&rights, &path("in")).is_ok(), may, "{rights:?}");
        }
        assert_eq!(
            permissions.may_delete(&granted(""), &path("in")),
            permissions.may_delete(&Rights::Unlisted, &path("in"))
        );
        let read_only = Permissions { read_only: true, ..permissions };
        for rights in [Rights::All, alice, plain(true)] {
            assert!(read_only.may_delete(&rights, &path("all/a")).is_err());
            assert!(read_only.may_write(&rights, &path("all/a")).is_err());
        }
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
        let rights = |write| Rights::Plain { write, delete: false, rate };
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
        let plain = Rights::Plain { write: false, delete: false, rate: Rate::from_megabits_per_second(8) };
        for rights in [plain, Rights::Unlisted] {
            let permits = [(); 2].map(|()| permissions.reads(&rights, &[]).unwrap());
            let began = clock.now();
            for turn in 0..11 {
                permits[turn % 2].charge(5_000, clock).unwrap();
            }
            assert!(clock.now() - began >= Duration::from_millis(50), "{rights:?}");
        }
    }
}
