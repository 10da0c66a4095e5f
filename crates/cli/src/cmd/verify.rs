//! `verify`: compares files with a manifest.

use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::path::PathBuf;

use clap::Args;
use farhaul_session::escape;
use farhaul_transfer::internal::manifest_file::{digest_of, place, read};
use serde_json::json;

use crate::exit::{Code, Fault};
use crate::output::human::plural;
use crate::output::{print, print_json};

/// Compare files with a manifest that `copy --manifest` wrote
///
/// A manifest has the BLAKE3 digest and the path of each file, as b3sum prints them. Exit code 6 means that a file has other
/// bytes, and 3 that one is missing or cannot be read.
///
///     farhaul copy -a --manifest run42.b3 run42 far.example:data/
///     farhaul verify --root /data run42.b3                   on far.example
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct VerifyArgs {
    /// Manifest
    #[arg(value_name = "FILE")]
    manifest: PathBuf,
    /// Directory to which the paths are relative
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    /// Print nothing but failures
    #[arg(short, long)]
    quiet: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &VerifyArgs) -> Result<(), Fault> {
    let shown = args.manifest.display();
    let file = File::open(&args.manifest)
        .map_err(|error| Fault::new(Code::LocalIo, format!("cannot read {shown}: {error}")).remedy("check its name"))?;
    let (mut verified, mut different, mut unread) = (0u64, 0u64, 0u64);
    let tell = |path: &[u8], status: &str| match args.json {
        true => print_json(&json!({ "path": escape(path), "status": status })),
        false if status == "verified" && args.quiet => {}
        false => print(&format!("{}: {status}\n", escape(path))),
    };
    for listed in read(BufReader::new(file)) {
        let listed = listed.map_err(|why| Fault::usage(format!("{shown} is no manifest: {why}")))?;
        match digest_of(&place(&args.root, &listed.path)) {
            Ok(digest) if digest == listed.digest => {
                verified += 1;
                tell(&listed.path, "verified");
            }
            Ok(_) => {
                different += 1;
                tell(&listed.path, "different");
            }
            Err(error) => {
                unread += 1;
                let is_missing = error.kind() == ErrorKind::NotFound;
                tell(&listed.path, if is_missing { "missing" } else { "unreadable" });
            }
        }
    }
    if different > 0 {
        let message =
            format!("{} of {} other than in {shown}", plural(different, "file"), verified + different + unread);
        return Err(Fault::new(Code::Integrity, message).remedy("copy them again"));
    }
    if unread > 0 {
        let message = format!("{} of {} missing or unreadable", plural(unread, "file"), verified + unread);
        return Err(Fault::new(Code::FilesFailed, message).remedy("check --root, the directory of the paths"));
    }
    Ok(())
}
