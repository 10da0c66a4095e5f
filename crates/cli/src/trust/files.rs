//! Files of keys: private ones nobody else may read, and none is ever overwritten.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use farhaul::security::KeyPair;
use zeroize::Zeroizing;

use crate::exit::{Code, Fault};

/// Longest text that is looked at for a key, bytes. A key of Ed25519 in PEM has 119.
const LONGEST_KEY: u64 = 16 << 10;
/// Permissions of a private key: its owner alone.
pub(super) const PRIVATE: u32 = 0o600;
/// Permissions of a public key.
pub(super) const PUBLIC: u32 = 0o644;
/// Bits that nobody else may have on a private key.
const OTHERS: u32 = 0o077;

/// Bits by which others than the owner could change whom this program trusts.
const WRITABLE: u32 = 0o022;

/// First line of a private key in OpenSSH's own format (PROTOCOL.key of OpenSSH).
const OPENSSH: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";

/// Reads a text; `None` if there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<String>, Fault> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(Fault::new(Code::LocalIo, format!("cannot read {}: {error}", path.display()))),
    }
}

/// Reads a text that says whom to trust; `None` if there is no such file.
///
/// # Errors
/// It cannot be read, or others than its owner may write it.
pub(super) fn read_trusted(path: &Path) -> Result<Option<String>, Fault> {
    let Some(text) = read(path)? else { return Ok(None) };
    let is_writable = fs::metadata(path).is_ok_and(|file| file.is_file() && file.mode() & WRITABLE != 0);
    if is_writable {
        let message =
            format!("others may write {path}, which says whom to trust; run: chmod go-w {path}", path = path.display());
        return Err(Fault::new(Code::NotPermitted, message));
    }
    Ok(Some(text))
}

/// Reads a text that may be a private key, into memory that is erased afterwards. `None` if there is no such file.
pub(super) fn read_secret(path: &Path) -> Result<Option<Zeroizing<String>>, Fault> {
    // Of full size from the start, since a growing buffer leaves copies behind. Only its begin can be a key.
    let mut text = Zeroizing::new(String::with_capacity(LONGEST_KEY as usize + 1));
    match fs::File::open(path).and_then(|file| file.take(LONGEST_KEY).read_to_string(&mut text)) {
        Ok(_) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(Fault::new(Code::LocalIo, format!("cannot read {}: {error}", path.display()))),
    }
}

/// Reads a private key; `None` if there is no such file.
pub(super) fn read_pair(path: &Path) -> Result<Option<KeyPair>, Fault> {
    let Some(text) = read_secret(path)? else { return Ok(None) };
    refuse_openssh(path, &text)?;
    let no_key = |error| Fault::new(Code::LocalIo, format!("{} is no private key: {error}", path.display()));
    let pair = KeyPair::from_pem(&text).map_err(no_key)?;
    check_private(path)?;
    Ok(Some(pair))
}

/// Refuses a private key of OpenSSH, which has a format of its own.
pub(super) fn refuse_openssh(path: &Path, text: &str) -> Result<(), Fault> {
    if !text.trim_start().starts_with(OPENSSH) {
        return Ok(());
    }
    let path = path.display();
    Err(Fault::new(
        Code::LocalIo,
        format!(
            "{path} is a private key in the format of OpenSSH, which is not read here; `farhaul key show {path}.pub` reads \
             its public key, and `farhaul key new` makes a key pair for this program"
        ),
    ))
}

/// Refuses a private key that others may read.
pub(super) fn check_private(path: &Path) -> Result<(), Fault> {
    let mode = fs::metadata(path)
        .map_err(|error| Fault::new(Code::LocalIo, format!("cannot read {}: {error}", path.display())))?
        .mode();
    if mode & OTHERS == 0 {
        return Ok(());
    }
    let message = format!("others may read the private key {path}; run: chmod 600 {path}", path = path.display());
    Err(Fault::new(Code::NotPermitted, message))
}

/// Writes a file that does not exist. It appears with its whole content, or not at all.
///
/// # Errors
/// `AlreadyExists`, or the system's error.
pub(super) fn write_new(path: &Path, mode: u32, text: &str) -> io::Result<()> {
    let unfinished = with_suffix(path, &format!(".{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&unfinished)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    // A link fails if the name exists, while a rename would replace the file.
    let named = written.and_then(|()| fs::hard_link(&unfinished, path));
    let removed = fs::remove_file(&unfinished);
    named.and(removed)
}

/// Appends a line to a file, which is made if need be. A last line that somebody left without an end is ended first.
pub(super) fn append(path: &Path, line: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(PRIVATE).open(path)?;
    let length = file.metadata()?.len();
    let mut last = *b"\n";
    if let Some(at) = length.checked_sub(1) {
        file.read_exact_at(&mut last, at)?;
    }
    let end = if last == *b"\n" { "" } else { "\n" };
    // One call, so that lines of several programs do not mix.
    file.write_all(format!("{end}{line}").as_bytes())
}

/// The path with these characters behind its name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_that_others_may_write_is_not_trusted() {
        let file = std::env::temp_dir().join(format!("farhaul-trusted-{}", std::process::id()));
        fs::write(&file, "somebody").unwrap();
        for (mode, is_trusted) in [(0o600, true), (0o644, true), (0o664, false), (0o666, false)] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_trusted(&file).is_ok(), is_trusted, "{mode:o}");
        }
        fs::remove_file(&file).unwrap();
        assert_eq!(read_trusted(&file).unwrap(), None);
    }

    #[test]
    fn a_line_follows_a_last_line_without_an_end() {
        let folder = std::env::temp_dir().join(format!("farhaul-append-{}", std::process::id()));
        let file = folder.join("new/known_hosts");
        append(&file, "one\n").unwrap();
        append(&file, "two\n").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "one\ntwo\n");
        fs::write(&file, "by hand").unwrap();
        append(&file, "three\n").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "by hand\nthree\n");
        fs::remove_dir_all(&folder).unwrap();
    }
}
