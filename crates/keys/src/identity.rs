//! The user's key: who this side is for its peers.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use farhaul::Code;
use farhaul::security::{KeyPair, PublicKey};

use super::files::{self, PRIVATE, PUBLIC, with_suffix};
use super::places;
use crate::error::Error;
use crate::notices::Notices;

/// The key in `file`, or the user's own. The user's own is made on first use.
pub fn load(file: Option<&Path>, events: &impl Notices) -> Result<KeyPair, Error> {
    if let Some(path) = file {
        return files::read_pair(path)?.ok_or_else(|| missing(path));
    }
    let Some(path) = places::key_file() else {
        events.note("neither HOME nor XDG_CONFIG_HOME is set, so the key of this side is new in each run");
        return generate();
    };
    if let Some(pair) = files::read_pair(&path)? {
        return Ok(pair);
    }
    match make(&path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            events
                .note(&format!("cannot write {}, so the key of this side is new in each run: {error}", path.display()));
            generate()
        }
        // Another program may have made it meanwhile, and the folder may be one in which others replace it.
        _ => files::read_pair(&path)?.ok_or_else(|| missing(&path)),
    }
}

/// The key in `file`, which is made if it does not exist.
pub fn load_or_make(file: &Path) -> Result<KeyPair, Error> {
    if let Some(pair) = files::read_pair(file)? {
        return Ok(pair);
    }
    let made = make(file);
    made.map_err(|error| Error::new(Code::LocalIo, format!("cannot write the key {}: {error}", file.display())))?;
    // The folder may be one in which others replace the new key. The next start would refuse it as well.
    files::read_pair(file)?.ok_or_else(|| missing(file))
}

/// The key in `file`, or the user's own if there is one. Makes none.
pub fn existing(file: Option<&Path>) -> Result<Option<KeyPair>, Error> {
    match (file, places::key_file()) {
        (Some(path), _) => files::read_pair(path)?.ok_or_else(|| missing(path)).map(Some),
        (None, Some(path)) => files::read_pair(&path),
        (None, None) => Ok(None),
    }
}

/// A key pair that lives as long as this process.
pub fn generate() -> Result<KeyPair, Error> {
    KeyPair::generate().map_err(|error| Error::new(Code::Failed, error.to_string()))
}

/// Makes a pair in `path`, and its public key beside it. Missing folders are made.
pub fn make(path: &Path) -> io::Result<KeyPair> {
    files::make_folder(path)?;
    let pair = KeyPair::generate().map_err(io::Error::other)?;
    files::write_new(path, PRIVATE, &pair.to_pem())?;
    // An old public key without its private one is worth nothing.
    let public = public_file(path);
    let _ = fs::remove_file(&public);
    files::write_new(&public, PUBLIC, &format!("{}\n", pair.public()))?;
    Ok(pair)
}

/// The file of the public key.
pub fn public_file(path: &Path) -> PathBuf {
    with_suffix(path, ".pub")
}

/// The public key in a file of a private or a public key.
pub fn public(path: &Path) -> Result<PublicKey, Error> {
    files::read_public(path)?.ok_or_else(|| missing(path))
}

fn missing(path: &Path) -> Error {
    Error::new(Code::LocalIo, format!("there is no key {}; make one with `farhaul key new`", path.display()))
}
