//! `key`: makes and shows the key of a user or a daemon.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use farhaul::security::{KeyPair, PublicKey};
use serde_json::json;

use crate::config;
use crate::exit::{Code, Fault};
use crate::output::print;

/// Permissions of a private key: its owner alone.
const PRIVATE: u32 = 0o600;
/// Bits that nobody else may have.
const OTHERS: u32 = 0o077;

/// Make or show a key: the identity of a user or a daemon
#[derive(Args, Debug)]
pub(crate) struct KeyArgs {
    #[command(subcommand)]
    verb: KeyVerb,
}

#[derive(Subcommand, Debug)]
enum KeyVerb {
    /// Make a key pair: FILE, which nobody else may read, and FILE.pub for the other side
    New(FileArgs),
    /// Print the public key, in the format of OpenSSH
    Show(FileArgs),
    /// Print the fingerprint of the public key, as `ssh-keygen -l` does
    Fingerprint(FileArgs),
}

#[derive(Args, Debug)]
struct FileArgs {
    /// File of the private key; for `show` and `fingerprint` also of a public key
    /// [default: ~/.config/farhaul/key]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &KeyArgs) -> Result<(), Fault> {
    match &args.verb {
        KeyVerb::New(args) => new(args),
        KeyVerb::Show(args) => {
            let key = public(&args.path()?)?;
            args.print(key, &key.to_string());
            Ok(())
        }
        KeyVerb::Fingerprint(args) => {
            let key = public(&args.path()?)?;
            args.print(key, &key.fingerprint());
            Ok(())
        }
    }
}

impl FileArgs {
    fn path(&self) -> Result<PathBuf, Fault> {
        let given = self.file.clone().or_else(config::key_file);
        given.ok_or_else(|| Fault::usage("neither HOME nor XDG_CONFIG_HOME is set; give the file of the key"))
    }

    fn print(&self, key: PublicKey, line: &str) {
        if self.json {
            print(&format!("{}\n", json!({ "key": key.to_string(), "fingerprint": key.fingerprint() })));
        } else {
            print(&format!("{line}\n"));
        }
    }
}

fn new(args: &FileArgs) -> Result<(), Fault> {
    let path = args.path()?;
    let public = with_suffix(&path);
    if let Some(folder) = path.parent().filter(|_| args.file.is_none()) {
        fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    }
    if let Some(there) = [&path, &public].into_iter().find(|place| place.exists()) {
        return Err(exists(there));
    }
    let pair = KeyPair::generate().map_err(|error| Fault::new(Code::Failed, error.to_string()))?;
    write_new(&path, PRIVATE, &pair.to_pem())?;
    write_new(&public, 0o644, &format!("{}\n", pair.public()))?;
    args.print(
        pair.public(),
        &format!("{}\nmade {} and {}", pair.public().fingerprint(), path.display(), public.display()),
    );
    Ok(())
}

fn with_suffix(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".pub");
    name.into()
}

/// Writes a file that does not exist: a key is never overwritten.
fn write_new(path: &Path, mode: u32, text: &str) -> Result<(), Fault> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut file = match opened {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(exists(path));
        }
        opened => opened.map_err(|error| unwritable(path, &error))?,
    };
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| unwritable(path, &error))
}

fn exists(path: &Path) -> Fault {
    Fault::new(Code::LocalIo, format!("{} exists; remove it first, or give another file", path.display()))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Fault {
    Fault::new(Code::LocalIo, format!("cannot write {}: {error}", path.display()))
}

/// The public key in a file of a private or a public key.
fn public(path: &Path) -> Result<PublicKey, Fault> {
    let unreadable = |error: &std::io::Error| match error.kind() {
        ErrorKind::NotFound => {
            Fault::new(Code::LocalIo, format!("there is no key {}; make one with `farhaul key new`", path.display()))
        }
        _ => Fault::new(Code::LocalIo, format!("cannot read {}: {error}", path.display())),
    };
    let text = fs::read_to_string(path).map_err(|error| unreadable(&error))?;
    let Ok(pair) = KeyPair::from_pem(&text) else {
        let key = text.parse();
        return key.map_err(|error| Fault::new(Code::LocalIo, format!("{} has no key: {error}", path.display())));
    };
    let mode = fs::metadata(path).map_err(|error| unreadable(&error))?.mode();
    if mode & OTHERS != 0 {
        let message = format!("others may read the private key {path}; run: chmod 600 {path}", path = path.display());
        return Err(Fault::new(Code::NotPermitted, message));
    }
    Ok(pair.public())
}
