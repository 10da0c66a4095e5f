//! Settings files and files of keys: whether they can be read, and whether only their owner may.

use std::fmt::Display;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use clap::Command;
use farhaul::security::{AuthorizedKeys, KnownHosts, LineError};
use farhaul_transfer::internal::keys::{identity, places};
use farhaul_transfer::internal::lists;

use super::finding::{Finding, quoted};
use crate::config::{self, Config};
use crate::exit::{Code, Fault};
use crate::output::human::plural;

/// Bits of a file that let others than its owner write to it.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// `key`: the file of this side's key, unless it is the usual one. `command`: the options that a settings file may have.
pub(super) fn examine(key: Option<&Path>, command: &Command) -> Vec<Finding> {
    let settings = judge_settings(Config::examine(command), &config::files_to_look_for());
    let mut found = vec![settings, private_key(key)];
    let known = places::known_hosts_file();
    found.extend(known.and_then(|file| {
        lines("known_hosts", &file, "known server", |text| KnownHosts::parse(text).map(|_| entries(text)))
    }));
    let authorized = places::authorized_keys_file();
    found.extend(authorized.and_then(|file| {
        lines("authorized_keys", &file, "admitted key", |text| {
            AuthorizedKeys::parse(text).map(|keys| keys.grants().len())
        })
    }));
    found
}

/// `places`: the paths of all files that the program looks for.
pub(super) fn judge_settings(read: Result<Vec<String>, Fault>, places: &[String]) -> Finding {
    match read {
        Ok(files) if files.is_empty() => Finding::ok("settings", "no settings file: defaults apply"),
        Ok(files) => Finding::ok("settings", format!("{} can be read", files.join(", "))),
        Err(fault) => {
            let file = places.iter().find(|place| fault.message.contains(place.as_str()));
            let finding = Finding::problem("settings", fault.message.clone());
            match file {
                Some(file) => finding.fix(format!("${{EDITOR:-vi}} {}", quoted(file))),
                None => finding,
            }
        }
    }
}

fn private_key(given: Option<&Path>) -> Finding {
    let Some(path) = given.map(Path::to_owned).or_else(places::key_file) else {
        return Finding::advice("key", "neither HOME nor XDG_CONFIG_HOME is set, so the key is new in each run")
            .fix("export HOME=~");
    };
    let folder = path.parent().and_then(|folder| fs::metadata(folder).ok()).map(|folder| folder.mode());
    match path.exists() {
        false => judge_key(&path, None, folder),
        true => {
            judge_key(&path, Some(identity::public(&path).map(|key| key.fingerprint()).map_err(Fault::from)), folder)
        }
    }
}

/// `read`: the fingerprint; `None` if there is no such file. `folder`: the permissions of its folder.
pub(super) fn judge_key(path: &Path, read: Option<Result<String, Fault>>, folder: Option<u32>) -> Finding {
    let (path, typed) = (path.display(), quoted(&path.to_string_lossy()));
    match read {
        None => Finding::ok("key", format!("none yet: the first encrypted connection makes {path}")),
        Some(Err(fault)) if fault.code == Code::NotPermitted => {
            Finding::problem("key", format!("others may read the private key {path}")).fix(format!("chmod 600 {typed}"))
        }
        Some(Err(fault)) => {
            let message = format!("{}, so nothing can be encrypted", fault.message);
            Finding::problem("key", message).fix(format!("mv {typed} {typed}.broken && farhaul key new {typed}"))
        }
        Some(Ok(_)) if folder.is_some_and(|mode| mode & WRITABLE_BY_OTHERS != 0) => Finding::problem(
            "key",
            format!("others may replace the private key {path}, because they may write to its folder"),
        )
        .fix(format!("chmod go-w \"$(dirname {typed})\"")),
        Some(Ok(fingerprint)) => Finding::ok("key", format!("{fingerprint}, which its owner alone may read")),
    }
}

fn entries(text: &str) -> usize {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).count()
}

/// The finding about a file with lines of keys. `None` if there is no such file.
fn lines(
    id: &'static str,
    path: &Path,
    noun: &str,
    parse: impl Fn(&str) -> Result<usize, LineError>,
) -> Option<Finding> {
    let mode = fs::metadata(path).ok()?.mode();
    let (shown, typed) = (path.display(), quoted(&path.to_string_lossy()));
    let unreadable = |error: &dyn Display| Finding::problem(id, format!("cannot read {shown}: {error}"));
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) => return Some(unreadable(&error).fix(format!("chmod u+r {typed}"))),
    };
    Some(match lists::utf8(&text) {
        Ok(text) => judge_lines(id, path, noun, parse(text), mode),
        Err(error) => unreadable(&error).fix(format!("${{EDITOR:-vi}} {typed}")),
    })
}

/// `parsed`: the number of entries. `mode`: the permissions of the file.
pub(super) fn judge_lines(
    id: &'static str,
    path: &Path,
    noun: &str,
    parsed: Result<usize, LineError>,
    mode: u32,
) -> Finding {
    let (path, typed) = (path.display(), quoted(&path.to_string_lossy()));
    match parsed {
        Err(error) => {
            Finding::problem(id, format!("{path}: {error}")).fix(format!("${{EDITOR:-vi}} +{} {typed}", error.line))
        }
        Ok(_) if mode & WRITABLE_BY_OTHERS != 0 => {
            Finding::problem(id, format!("others may add keys to {path}")).fix(format!("chmod go-w {typed}"))
        }
        Ok(count) => Finding::ok(id, format!("{} in {path}", plural(count as u64, noun))),
    }
}

#[cfg(test)]
mod tests {
    use farhaul::security::KeyPair;

    use super::super::finding::FindingState;
    use super::*;

    const PATH: &str = "/home/a/.config/farhaul/key";

    fn key(read: Option<Result<String, Fault>>, folder: u32) -> Finding {
        judge_key(Path::new(PATH), read, Some(folder))
    }

    #[test]
    fn a_key_that_others_read_or_replace_is_a_problem() {
        let others = key(Some(Err(Fault::new(Code::NotPermitted, "others"))), 0o700);
        assert_eq!((others.state, others.fix), (FindingState::Problem, Some(format!("chmod 600 {PATH}"))));
        let folder = key(Some(Ok("SHA256:x".into())), 0o777);
        assert!(folder.state == FindingState::Problem && folder.fix.unwrap().contains("chmod go-w"));
        let broken = key(Some(Err(Fault::new(Code::LocalIo, "it is no key"))), 0o700);
        assert!(broken.fix.unwrap().contains("farhaul key new"));
    }

    #[test]
    fn no_key_and_a_safe_key_need_nothing() {
        assert!(key(None, 0o755).message.starts_with("none yet"));
        let safe = key(Some(Ok("SHA256:x".into())), 0o755);
        assert!(safe.state == FindingState::Ok && safe.message.starts_with("SHA256:x"), "{}", safe.message);
    }

    #[test]
    fn a_wrong_line_is_opened_in_an_editor() {
        let wrong = KnownHosts::parse("# x\nfar ssh-rsa AAAA\n").map(|_| 0);
        let finding = judge_lines("known_hosts", Path::new("/k"), "known server", wrong, 0o600);
        assert_eq!((finding.state, finding.fix.as_deref()), (FindingState::Problem, Some("${EDITOR:-vi} +2 /k")));
        let open = judge_lines("known_hosts", Path::new("/k"), "known server", Ok(2), 0o666);
        assert_eq!(open.fix.as_deref(), Some("chmod go-w /k"));
        let line = KnownHosts::line("far:1", KeyPair::generate().unwrap().public());
        assert_eq!(entries(&format!("# x\n\n{line}")), 1);
    }

    #[test]
    fn a_settings_file_that_cannot_be_read_is_opened_in_an_editor() {
        let places = ["/etc/xdg/farhaul/config.toml".to_owned()];
        assert_eq!(judge_settings(Ok(Vec::new()), &places).state, FindingState::Ok);
        assert!(judge_settings(Ok(places.to_vec()), &places).message.contains("can be read"));
        let wrong = Fault::usage("/etc/xdg/farhaul/config.toml is no TOML: line 3: x");
        assert_eq!(
            judge_settings(Err(wrong), &places).fix.as_deref(),
            Some("${EDITOR:-vi} /etc/xdg/farhaul/config.toml")
        );
    }
}
