//! The folder of the sockets. Only its owner may enter it, which is checked before each use.

use std::env;
use std::fs::{DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// The rights of the folder: all for its owner, and none for others.
const MODE: u32 = 0o700;
const RIGHTS: u32 = 0o777;

/// The folder, which is made if it does not exist.
///
/// # Errors
/// There is none that belongs to this user alone.
pub(crate) fn folder() -> io::Result<PathBuf> {
    let user = geteuid().as_raw();
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match runtime.filter(|runtime| runtime.symlink_metadata().is_ok_and(|found| is_of(&found, user))) {
        Some(runtime) => own(runtime.join("farhaul"), user),
        None => own(Path::new("/tmp").join(format!("farhaul-{user}")), user),
    }
}

/// This folder of the user, if nobody else may enter it.
fn own(folder: PathBuf, user: u32) -> io::Result<PathBuf> {
    match DirBuilder::new().mode(MODE).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(said(&folder, &error)),
        _ => {}
    }
    // A link is none, whatever it leads to.
    let found = folder.symlink_metadata().map_err(|error| said(&folder, &error))?;
    if is_of(&found, user) && found.mode() & RIGHTS == MODE {
        return Ok(folder);
    }
    let message = format!("{} is no folder of this user that nobody else may enter", folder.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

fn is_of(found: &Metadata, user: u32) -> bool {
    found.is_dir() && found.uid() == user
}

fn said(folder: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", folder.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_folder_that_others_may_enter_or_own_and_a_link_are_refused() {
        let base = env::temp_dir().join(format!("farhaul-folder-{}", std::process::id()));
        fs::create_dir_all(&base).unwrap();
        let user = geteuid().as_raw();
        let made = own(base.join("new"), user);
        let again = own(base.join("new"), user);
        let of_another = own(base.join("new"), user + 1);
        symlink(base.join("new"), base.join("link")).unwrap();
        let link = own(base.join("link"), user);
        fs::set_permissions(base.join("new"), fs::Permissions::from_mode(0o750)).unwrap();
        let open = own(base.join("new"), user);
        fs::write(base.join("file"), "").unwrap();
        let file = own(base.join("file"), user);
        fs::remove_dir_all(&base).unwrap();
        assert!(made.is_ok() && again.is_ok());
        for refused in [of_another, link, open, file] {
            assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
    }
}
