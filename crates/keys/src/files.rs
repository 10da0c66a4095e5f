//! Files of keys: private ones nobody else may read, and none is ever overwritten.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use farhaul::Code;
use farhaul::security::{AuthorizedKeys, KeyPair, PublicKey};
use zeroize::Zeroizing;

use super::trusted_file;
use crate::error::Error;
use crate::lists;

/// Longest text that is looked at for a key, bytes. A key of Ed25519 in PEM has 119.
const LONGEST_KEY: u64 = 16 << 10;
/// Permissions of a private key: its owner alone.
pub(super) const PRIVATE: u32 = 0o600;
/// Permissions of a public key.
pub(super) const PUBLIC: u32 = 0o644;
/// Bits that nobody else may have on a private key.
const OTHERS: u32 = 0o077;

/// Permissions of a folder of keys. With a wide umask, it would be one that others may write to.
const FOLDER: u32 = 0o700;

/// First line of a private key in OpenSSH's own format (PROTOCOL.key of OpenSSH).
const OPENSSH: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";

/// Reads a text that says whom to trust; `None` if there is no such file.
///
/// # Errors
/// It cannot be read, or others than its owner may have written it.
pub fn read_trusted(path: &Path) -> Result<Option<String>, Error> {
    let opened = trusted_file::open(path, "says whom to trust").map_err(|why| why.error(path))?;
    let Some(mut file) = opened else { return Ok(None) };
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(|error| unreadable(path, &error))?;
    match lists::utf8(&text) {
        Ok(text) => Ok(Some(text.to_owned())),
        Err(error) => Err(Error::new(Code::LocalIo, format!("cannot read {}: {error}", path.display()))),
    }
}

/// Reads a text that may be a key, into memory that is erased afterwards.
fn read_secret(path: &Path, file: &File) -> Result<Zeroizing<String>, Error> {
    // Of full size from the start, since a growing buffer leaves copies behind. Only its begin can be a key.
    let mut text = Zeroizing::new(String::with_capacity(LONGEST_KEY as usize + 1));
    match file.take(LONGEST_KEY).read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// Reads a private key; `None` if there is no such file.
///
/// # Errors
/// It cannot be read, or others than its owner may read it or may have written it.
pub(super) fn read_pair(path: &Path) -> Result<Option<KeyPair>, Error> {
    let opened = trusted_file::open(path, "is the key of this side").map_err(|why| why.error(path))?;
    let Some(file) = opened else { return Ok(None) };
    let text = read_secret(path, &file)?;
    refuse_openssh(path, &text)?;
    let no_key = |error| Error::new(Code::LocalIo, format!("{} is no private key: {error}", path.display()));
    let pair = KeyPair::from_pem(&text).map_err(no_key)?;
    check_private(path, &file)?;
    Ok(Some(pair))
}

/// The public key in a file of a private or a public key; `None` if there is no such file.
pub(super) fn read_public(path: &Path) -> Result<Option<PublicKey>, Error> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(unreadable(path, &error)),
    };
    let text = read_secret(path, &file)?;
    let Ok(pair) = KeyPair::from_pem(&text) else {
        refuse_openssh(path, &text)?;
        let no_key = |error| Error::new(Code::LocalIo, format!("{} has no key: {error}", path.display()));
        return text.trim_start_matches('\u{feff}').parse().map(Some).map_err(no_key);
    };
    check_private(path, &file)?;
    Ok(Some(pair.public()))
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::new(Code::LocalIo, format!("cannot read {}: {error}", path.display()))
}

/// Refuses a private key of OpenSSH, which has a format of its own.
fn refuse_openssh(path: &Path, text: &str) -> Result<(), Error> {
    if !text.trim_start().starts_with(OPENSSH) {
        return Ok(());
    }
    let path = path.display();
    Err(Error::new(
        Code::LocalIo,
        format!(
            "{path} is a private key in the format of OpenSSH, which is not read here; `farhaul key show {path}.pub` reads \
             its public key, and `farhaul key new` makes a key pair for this program"
        ),
    ))
}

/// Refuses a private key that others may read.
fn check_private(path: &Path, file: &File) -> Result<(), Error> {
    let mode = file.metadata().map_err(|error| unreadable(path, &error))?.mode();
    if mode & OTHERS == 0 {
        return Ok(());
    }
    let message = format!("others may read the private key {path}; run: chmod 600 {path}", path = path.display());
    Err(Error::new(Code::NotPermitted, message))
}

/// Makes the folder of a file of keys, and those above it, as far as they do not exist.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => DirBuilder::new().recursive(true).mode(FOLDER).create(folder),
        None => Ok(()),
    }
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
    make_folder(path)?;
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

/// Adds the line of a client to a file of authorized keys, which is made if need be. Returns its key, and whether it was not there yet.
///
/// # Errors
/// It is no line, the file has another line of its key, or the file cannot be read or written.
pub fn add_client(path: &Path, line: &str) -> Result<(PublicKey, bool), Error> {
    let line = line.trim();
    let refused = |error| Error::usage(format!("{error}"));
    let parsed = AuthorizedKeys::parse(line).map_err(refused)?;
    let [grant] = parsed.grants() else {
        return Err(
            Error::usage("give one line: a key, a name and options").remedy("`farhaul key show` prints the key")
        );
    };
    let text = read_trusted(path)?.unwrap_or_default();
    let in_file = |error| Error::usage(format!("{}: {error}", path.display()));
    let known = AuthorizedKeys::parse(&text).map_err(in_file)?;
    match known.grants().iter().find(|known| known.key == grant.key) {
        Some(known) if known == grant => return Ok((grant.key, false)),
        Some(_) => {
            let message = format!("{} has a line of this key with other options", path.display());
            return Err(Error::usage(message).remedy("change that line: a key has one"));
        }
        None => {}
    }
    let written = append(path, &format!("{line}\n"));
    written.map_err(|error| Error::new(Code::LocalIo, format!("cannot write {}: {error}", path.display())))?;
    Ok((grant.key, true))
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
    fn files_of_keys_may_come_from_any_editor() {
        let file = std::env::temp_dir().join(format!("farhaul-edited-{}", std::process::id()));
        let key = KeyPair::generate().unwrap().public();
        fs::write(&file, format!("\u{feff}# mine\r\n{key} me\r\n")).unwrap();
        let text = read_trusted(&file).unwrap().unwrap();
        assert_eq!(AuthorizedKeys::parse(&text).unwrap().grants()[0].key, key);
        fs::write(&file, format!("\u{feff}{key}")).unwrap();
        assert_eq!(read_public(&file).unwrap(), Some(key));
        fs::write(&file, format!("{key}\r\n").encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()).unwrap();
        assert!(read_trusted(&file).unwrap_err().message.ends_with("save it as UTF-8"));
        fs::remove_file(&file).unwrap();
    }

    #[test]
    fn the_line_of_a_client_is_added_once_and_only_if_the_file_stays_one() {
        let folder = std::env::temp_dir().join(format!("farhaul-add-{}", std::process::id()));
        let (file, key) = (folder.join("new/authorized_keys"), KeyPair::generate().unwrap().public());
        let line = format!("{key} alice path=/srv/in,write");
        assert_eq!(add_client(&file, &line).unwrap(), (key, true));
        assert_eq!(add_client(&file, &format!(" {line}\n")).unwrap(), (key, false));
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{line}\n"));
        for wrong in
            [format!("{key}"), format!("{key} rat=1gbit"), String::new(), format!("{line}\n{line}"), "me".into()]
        {
            assert_eq!(add_client(&file, &wrong).unwrap_err().code, Code::Usage, "{wrong}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{line}\n"));
        fs::remove_dir_all(&folder).unwrap();
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
