//! The user's key: who this side is for its peers.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use farhaul::security::{KeyPair, PublicKey};

use super::files::{self, PRIVATE, PUBLIC, check_private, with_suffix};
use crate::config;
use crate::exit::{Code, Fault};
use crate::output::Output;

/// The key in `file`, or the user's own. The user's own is made on first use.
pub(crate) fn load(file: Option<&Path>, output: &Output) -> Result<KeyPair, Fault> {
    if let Some(path) = file {
        return files::read_pair(path)?.ok_or_else(|| missing(path));
    }
    let Some(path) = config::key_file() else {
        output.say("neither HOME nor XDG_CONFIG_HOME is set, so the key of this side is new in each run");
        return generate();
    };
    if let Some(pair) = files::read_pair(&path)? {
        return Ok(pair);
    }
    match make(&path) {
        Ok(pair) => Ok(pair),
        // Another program made it meanwhile.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            files::read_pair(&path)?.ok_or_else(|| missing(&path))
        }
        Err(error) => {
            output
                .say(&format!("cannot write {}, so the key of this side is new in each run: {error}", path.display()));
            generate()
        }
    }
}

/// The key in `file`, which is made if it does not exist.
pub(crate) fn load_or_make(file: &Path) -> Result<KeyPair, Fault> {
    if let Some(pair) = files::read_pair(file)? {
        return Ok(pair);
    }
    make(file).map_err(|error| Fault::new(Code::LocalIo, format!("cannot write the key {}: {error}", file.display())))
}

/// The key in `file`, or the user's own if there is one. Makes none.
pub(crate) fn existing(file: Option<&Path>) -> Result<Option<KeyPair>, Fault> {
    match (file, config::key_file()) {
        (Some(path), _) => files::read_pair(path)?.ok_or_else(|| missing(path)).map(Some),
        (None, Some(path)) => files::read_pair(&path),
        (None, None) => Ok(None),
    }
}

/// A key pair that lives as long as this process.
pub(crate) fn generate() -> Result<KeyPair, Fault> {
    KeyPair::generate().map_err(|error| Fault::new(Code::Failed, error.to_string()))
}

/// Makes a pair in `path`, and its public key beside it. Missing folders are made.
pub(crate) fn make(path: &Path) -> io::Result<KeyPair> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    let pair = KeyPair::generate().map_err(io::Error::other)?;
    files::write_new(path, PRIVATE, &pair.to_pem())?;
    // An old public key without its private one is worth nothing.
    let public = public_file(path);
    let _ = fs::remove_file(&public);
    files::write_new(&public, PUBLIC, &format!("{}\n", pair.public()))?;
    Ok(pair)
}

/// The file of the public key.
pub(crate) fn public_file(path: &Path) -> PathBuf {
    with_suffix(path, ".pub")
}

/// The public key in a file of a private or a public key.
pub(crate) fn public(path: &Path) -> Result<PublicKey, Fault> {
    let text = files::read_secret(path)?.ok_or_else(|| missing(path))?;
    let Ok(pair) = KeyPair::from_pem(&text) else {
        files::refuse_openssh(path, &text)?;
        let key = text.parse();
        return key.map_err(|error| Fault::new(Code::LocalIo, format!("{} has no key: {error}", path.display())));
    };
    check_private(path)?;
    Ok(pair.public())
}

fn missing(path: &Path) -> Fault {
    Fault::new(Code::LocalIo, format!("there is no key {}; make one with `farhaul key new`", path.display()))
}
