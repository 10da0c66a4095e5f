//! Confinement of a server: the kernel itself keeps it from files beyond its root (Landlock).

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus,
};

use crate::exit::{Code, Fault};

/// The newest rights that are known here. Older kernels enforce those that they know.
const RIGHTS: ABI = ABI::V5;

/// How far the kernel confines this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confinement {
    Full,
    /// The kernel is older, and knows fewer rights.
    Partial,
    /// The kernel has no Landlock.
    None,
}

impl Confinement {
    /// The name in records.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::None => "none",
        }
    }
}

/// Keeps this thread, and those that it starts from now on, from files outside of the open directory `root`.
pub(super) fn to_root(root: impl AsFd, may_write: bool) -> Result<Confinement, Fault> {
    let refused = |error| Fault::new(Code::Failed, format!("cannot confine this server to its root: {error}"));
    let rights = if may_write { AccessFs::from_all(RIGHTS) } else { AccessFs::from_read(RIGHTS) };
    // Programs are none of a server's business.
    restrict(vec![(root, rights & !AccessFs::Execute)]).map_err(refused)
}

/// Keeps this thread from everything but reading files in the folders of these files, and of what they link to. A rule for a file
/// itself would end with it, and editors replace files.
pub(super) fn to_files(files: &[PathBuf]) -> Result<(), Fault> {
    let behind = files.iter().filter_map(|file| file.canonicalize().ok());
    let folders: BTreeSet<PathBuf> =
        files.iter().cloned().chain(behind).filter_map(|file| Some(file.parent()?.to_owned())).collect();
    // A folder that does not exist needs no rule.
    let opened = folders.iter().filter_map(|folder| PathFd::new(folder).ok());
    let rules = opened.map(|folder| (folder, AccessFs::ReadFile.into())).collect();
    let refused =
        |error| Fault::new(Code::Failed, format!("cannot confine the reading of keys to their folders: {error}"));
    restrict(rules).map(drop).map_err(refused)
}

/// Keeps this thread, and those that it starts, to these rights below these folders.
fn restrict(rules: Vec<(impl AsFd, BitFlags<AccessFs>)>) -> Result<Confinement, RulesetError> {
    let mut ruleset = Ruleset::default().handle_access(AccessFs::from_all(RIGHTS))?.create()?;
    for (folder, rights) in rules {
        ruleset = ruleset.add_rule(PathBeneath::new(folder, rights))?;
    }
    Ok(match ruleset.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => Confinement::Full,
        RulesetStatus::PartiallyEnforced => Confinement::Partial,
        RulesetStatus::NotEnforced => Confinement::None,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::thread;

    use super::*;

    #[test]
    fn a_confined_thread_reaches_its_root_alone() {
        let base = std::env::temp_dir().join(format!("farhaul-confine-{}", std::process::id()));
        let (root, other) = (base.join("root"), base.join("other"));
        for folder in [&root, &other] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("file"), "content").unwrap();
        }
        let (at, outside) = (root.clone(), other.clone());
        let confined = move || {
            let confinement = to_root(fs::File::open(&at).unwrap(), true).unwrap();
            let here = fs::read(at.join("file")).is_ok() && fs::write(at.join("new"), "new").is_ok();
            (confinement, here, fs::read(outside.join("file")).is_ok(), fs::write(outside.join("new"), "new").is_ok())
        };
        let (confinement, here, read, written) = thread::spawn(confined).join().unwrap();
        let at = root.clone();
        let reader = move || {
            to_root(fs::File::open(&at).unwrap(), false).map(|_| fs::write(at.join("newer"), "new").is_ok()).unwrap()
        };
        let reader_wrote = thread::spawn(reader).join().unwrap();
        fs::remove_dir_all(&base).unwrap();
        assert!(here);
        if confinement == Confinement::None {
            println!("skipped: this kernel has no Landlock");
        } else {
            assert!(!read && !written && !reader_wrote);
        }
    }

    #[test]
    fn the_thread_that_reads_keys_again_reads_files_in_their_folders_and_does_nothing_else() {
        let base = std::env::temp_dir().join(format!("farhaul-confine-keys-{}", std::process::id()));
        let [keys, real, other] = ["keys", "real", "other"].map(|name| base.join(name));
        for folder in [&keys, &real, &other] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("file"), "content").unwrap();
        }
        symlink(real.join("file"), keys.join("link")).unwrap();
        let files = vec![keys.join("link"), base.join("missing/file")];
        let at = base.clone();
        let confined = move || {
            to_files(&files).unwrap();
            let read = |path: &str| fs::read(at.join(path)).is_ok();
            // As editors do.
            fs::rename(real.join("file"), real.join("old")).is_ok()
                || fs::write(keys.join("new"), "new").is_ok()
                || fs::read_dir(&keys).is_ok()
                || read("other/file")
                || !read("keys/link")
                || !read("keys/file")
        };
        let wrong = thread::spawn(confined).join().unwrap();
        let confinement = thread::spawn(|| restrict(Vec::<(PathFd, _)>::new()).unwrap()).join().unwrap();
        fs::remove_dir_all(&base).unwrap();
        if confinement == Confinement::None {
            println!("skipped: this kernel has no Landlock");
        } else {
            assert!(!wrong);
        }
    }
}
