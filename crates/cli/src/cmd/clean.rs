//! `clean`: removes what broken copies left.

use std::path::PathBuf;

use clap::Args;
use farhaul_disk::{Cleaned, clean};
use farhaul_session::escape;
use farhaul_units::ByteSize;
use serde_json::json;

use crate::exit::{Code, Fault};
use crate::output::human::plural;
use crate::output::{print, print_json};

/// Remove incomplete files that broken copies left
///
/// A copy that was cut leaves .NAME.RANDOM.fhpart and .NAME.RANDOM.fhjournal beside its target, and the same copy goes on from
/// them. This command is for those that nobody will repeat. What a running copy holds stays.
///
///     farhaul clean -r /data/in
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct CleanArgs {
    /// Directories [default: the current one]
    #[arg(value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Also look into the directories below
    #[arg(short, long)]
    recursive: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &CleanArgs) -> Result<(), Fault> {
    let here = [PathBuf::from(".")];
    let directories = if args.directories.is_empty() { &here[..] } else { &args.directories };
    let mut all = Cleaned::default();
    for path in directories {
        let cleaned = clean(path, args.recursive).map_err(|error| {
            Fault::new(Code::LocalIo, format!("cannot clean {}: {error}", path.display()))
                .remedy("name a directory that you may read")
        })?;
        all.files += cleaned.files;
        all.bytes += cleaned.bytes;
        all.failures.extend(cleaned.failures);
    }
    match args.json {
        true => print_json(&json!({ "files": all.files, "bytes": all.bytes, "failed": all.failures.len() })),
        false => print(&format!("{} of {} removed\n", plural(all.files, "incomplete file"), ByteSize(all.bytes))),
    }
    let shown = |path: &PathBuf| escape(path.as_os_str().as_encoded_bytes());
    match &all.failures[..] {
        [] => Ok(()),
        [(path, failure)] => Err(Fault::new(Code::FilesFailed, format!("{}: {failure}", shown(path)))),
        [(path, failure), rest @ ..] => Err(Fault::new(
            Code::FilesFailed,
            format!("{}: {failure}; and {} more", shown(path), plural(rest.len() as u64, "directory")),
        )),
    }
}
