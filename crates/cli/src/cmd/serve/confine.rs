//! Confinement of a server: the kernel itself keeps it from files beyond its root (Landlock).

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus,
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

/// Keeps this thread, and those that it starts from now on, from files outside of `root`. The folders of `keys` stay readable.
pub(super) fn confine(root: &Path, may_write: bool, keys: &[&Path]) -> Result<Confinement, Fault> {
    let refused = |error: &dyn std::fmt::Display| {
        Fault::new(Code::Failed, format!("cannot confine this server to {}: {error}", root.display()))
    };
    let root_rights = if may_write { AccessFs::from_all(RIGHTS) } else { AccessFs::from_read(RIGHTS) };
    // Programs are none of a server's business.
    let root_rights = root_rights & !AccessFs::Execute;
    let ruleset =
        || -> Result<_, RulesetError> { Ruleset::default().handle_access(AccessFs::from_all(RIGHTS))?.create() };
    let mut ruleset = ruleset().map_err(|error| refused(&error))?;
    let opened = PathFd::new(root).map_err(|error| refused(&error))?;
    ruleset = ruleset.add_rule(PathBeneath::new(opened, root_rights)).map_err(|error| refused(&error))?;
    let readable = AccessFs::ReadFile | AccessFs::ReadDir;
    for folder in keys.iter().filter_map(|file| file.parent()) {
        // A folder that is gone needs no right.
        if let Ok(opened) = PathFd::new(folder) {
            ruleset = ruleset.add_rule(PathBeneath::new(opened, readable)).map_err(|error| refused(&error))?;
        }
    }
    let status = ruleset.restrict_self().map_err(|error| refused(&error))?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => Confinement::Full,
        RulesetStatus::PartiallyEnforced => Confinement::Partial,
        RulesetStatus::NotEnforced => Confinement::None,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
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
            let confinement = confine(&at, true, &[]).unwrap();
            let here = fs::read(at.join("file")).is_ok() && fs::write(at.join("new"), "new").is_ok();
            (confinement, here, fs::read(outside.join("file")).is_ok(), fs::write(outside.join("new"), "new").is_ok())
        };
        let (confinement, here, read, written) = thread::spawn(confined).join().unwrap();
        let at = root.clone();
        let reader = move || confine(&at, false, &[]).map(|_| fs::write(at.join("newer"), "new").is_ok()).unwrap();
        let reader_wrote = thread::spawn(reader).join().unwrap();
        fs::remove_dir_all(&base).unwrap();
        assert!(here);
        if confinement == Confinement::None {
            println!("skipped: this kernel has no Landlock");
        } else {
            assert!(!read && !written && !reader_wrote);
        }
    }
}
