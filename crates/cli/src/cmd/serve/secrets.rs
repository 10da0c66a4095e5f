//! Private keys below the root of a server: its own, those of this user, and those of homes.

use std::path::{Path, PathBuf};

use farhaul_transfer::internal::admission::Admission;
use farhaul_transfer::internal::keys::places;

use super::args::ServeArgs;
use crate::exit::Fault;
use crate::output::Output;

/// What this program, ssh and GnuPG keep in a home.
const OF_HOMES: [&str; 3] = [".config/farhaul/key", ".ssh", ".gnupg"];
/// Private keys and passwords of a system.
const OF_SYSTEM: [&str; 4] = ["/etc/ssh", "/etc/shadow", "/etc/farhaul", "/etc/ssl/private"];
/// Most folders in the root that are looked at for homes, as in /home.
const MOST_HOMES: usize = 1_000;

/// Refuses to serve a root with private keys to callers that nobody knows, unless the user names that danger. A daemon never serves
/// its own keys and settings. Otherwise it is a warning.
///
/// # Errors
/// The root is not to be served.
pub(super) fn check(
    args: &ServeArgs,
    output: &Output,
    (clients, has_plain): (Option<&Admission>, bool),
    root: &Path,
) -> Result<(), Fault> {
    let lies_below = |file: &&Path| file.canonicalize().is_ok_and(|file| file.starts_with(root));
    let settings = args.config.as_deref().filter(lies_below);
    let own = settings.or_else(|| clients.and_then(|clients| clients.file_below(root)));
    if let Some(file) = own.filter(|_| args.config.is_some()) {
        let file = file.display();
        return Err(Fault::usage(format!(
            "{file} lies below --root, where clients may find it: keep the keys and settings of a daemon elsewhere"
        )));
    }
    let Some(secret) = own.map(Path::to_owned).or_else(|| candidates(root).find(|file| lies_below(&file.as_path())))
    else {
        return Ok(());
    };
    let (secret, is_meant) = (secret.display(), args.expose_private_keys);
    match clients {
        Some(clients) if !clients.admits_anybody() && !has_plain => output.warn(&format!(
            "{secret} lies below --root, where clients may find it; serve another directory, or name another file"
        )),
        _ if is_meant => output.warn(&format!("{secret} lies below --root, and everybody who calls may read it")),
        _ => {
            return Err(Fault::usage(format!(
                "{secret} lies below --root, and callers that nobody knows could read the keys there: serve another \
                 directory, admit known keys alone, or hand them out with --expose-private-keys"
            )));
        }
    }
    Ok(())
}

/// Places of private keys, whether they exist or not.
fn candidates(root: &Path) -> impl Iterator<Item = PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    // The root may be a home, or a folder of homes.
    let folders = std::fs::read_dir(root).into_iter().flatten().flatten().take(MOST_HOMES).map(|entry| entry.path());
    let homes = home.into_iter().chain([root.to_owned()]).chain(folders);
    let of_homes = homes.flat_map(|home| OF_HOMES.map(|name| home.join(name)));
    places::key_file().into_iter().chain(OF_SYSTEM.map(PathBuf::from)).chain(of_homes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_home_are_found_from_the_home_itself_and_from_the_folder_above_it() {
        let base = std::env::temp_dir().join(format!("farhaul-secrets-{}", std::process::id()));
        std::fs::create_dir_all(base.join("alice/.ssh")).unwrap();
        let found = |root: &Path| candidates(root).any(|file| file == base.join("alice/.ssh"));
        let all = [found(&base.join("alice")), found(&base), found(&base.join("alice/.ssh"))];
        std::fs::remove_dir_all(&base).unwrap();
        assert_eq!(all, [true, true, false]);
    }
}
