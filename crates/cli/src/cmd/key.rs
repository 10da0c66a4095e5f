//! `key`: makes and shows the key of a user or a daemon.

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use farhaul::security::PublicKey;
use farhaul_transfer::internal::keys::{add_client, identity, places};
use serde_json::json;

use crate::exit::{Code, Fault};
use crate::output::{print, print_json};

/// Longest line that is read from stdin, bytes.
const LONGEST_LINE: u64 = 64 << 10;

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
    /// Admit a client: add its line to the authorized keys
    ///
    /// A line is what `farhaul key show` prints there, a name, and options: path=DIR,write rate=2gbit expires=2027-06-30. A daemon reads
    /// the file again after SIGHUP.
    Add(AddArgs),
}

#[derive(Args, Debug)]
struct AddArgs {
    /// The words of the line, or `-` to read it from stdin
    #[arg(required = true, value_name = "LINE")]
    words: Vec<String>,
    /// File of authorized keys [default: ~/.config/farhaul/authorized_keys]
    #[arg(long, value_name = "FILE")]
    authorized_keys: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
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
        KeyVerb::Add(args) => add(args),
        KeyVerb::Show(args) => {
            let key = identity::public(&args.path()?)?;
            args.print(key, &key.to_string());
            Ok(())
        }
        KeyVerb::Fingerprint(args) => {
            let key = identity::public(&args.path()?)?;
            args.print(key, &key.fingerprint());
            Ok(())
        }
    }
}

impl FileArgs {
    fn path(&self) -> Result<PathBuf, Fault> {
        let given = self.file.clone().or_else(places::key_file);
        given.ok_or_else(|| Fault::usage("neither HOME nor XDG_CONFIG_HOME is set; give the file of the key"))
    }

    fn print(&self, key: PublicKey, line: &str) {
        if self.json {
            print_json(&json!({ "key": key.to_string(), "fingerprint": key.fingerprint() }));
        } else {
            print(&format!("{line}\n"));
        }
    }
}

fn new(args: &FileArgs) -> Result<(), Fault> {
    let path = args.path()?;
    let public = identity::public_file(&path);
    if let Some(there) = [&path, &public].into_iter().find(|place| place.exists()) {
        return Err(exists(there));
    }
    let pair = identity::make(&path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(&path),
        _ => Fault::new(Code::LocalIo, format!("cannot write {}: {error}", path.display())),
    })?;
    args.print(
        pair.public(),
        &format!("{}\nmade {} and {}", pair.public().fingerprint(), path.display(), public.display()),
    );
    Ok(())
}

fn add(args: &AddArgs) -> Result<(), Fault> {
    let file = args.authorized_keys.clone().or_else(places::authorized_keys_file);
    let file = file.ok_or_else(|| Fault::usage("neither HOME nor XDG_CONFIG_HOME is set; give --authorized-keys"))?;
    let line = match &args.words[..] {
        [dash] if dash == "-" => {
            let mut line = String::new();
            let read = io::stdin().lock().take(LONGEST_LINE).read_to_string(&mut line);
            read.map_err(|error| Fault::new(Code::LocalIo, format!("cannot read stdin: {error}")))?;
            line
        }
        words => words.join(" "),
    };
    let (key, is_new) = add_client(&file, &line)?;
    let fingerprint = key.fingerprint();
    match args.json {
        true => {
            print_json(&json!({ "key": key.to_string(), "fingerprint": fingerprint, "file": file, "added": is_new }))
        }
        false if is_new => print(&format!("{fingerprint}\nadded to {}\n", file.display())),
        false => print(&format!("{fingerprint}\nis in {} already\n", file.display())),
    }
    Ok(())
}

fn exists(path: &Path) -> Fault {
    Fault::new(Code::LocalIo, format!("{} exists; remove it first, or give another file", path.display()))
}
