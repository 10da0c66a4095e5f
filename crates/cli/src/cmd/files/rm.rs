//! `rm`: removing entries on another host.

use clap::Args;
use farhaul_session::Removing;
use farhaul_transfer::Error;

use super::{Visit, remote};
use crate::cmd::Context;
use crate::exit::{Code, Fault};
use crate::options::FilesOptions;
use crate::output::json::FileStatus;
use crate::values::{Location, location};

/// Entries that one place of `rm -r` removes, unless the user permits more.
const MOST: u64 = 100_000;

/// Remove files and directories of another host
///
/// A symbolic link is removed itself. The line of a client's key needs `delete`: path=DIR,write,delete.
///
///     farhaul rm far.example:run42/tmp.bin
///     farhaul rm -r udt://host:9000/scratch/
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct RmArgs {
    /// Files or directories
    #[arg(required = true, value_name = "PLACE", value_parser = location())]
    pub(crate) places: Vec<Location>,
    /// Remove directories with everything in them
    #[arg(short, long)]
    recursive: bool,
    /// Remove empty directories, too
    #[arg(short, long)]
    dir: bool,
    /// With -r: most entries of each place. If there are more, the rest stays, and the place fails
    #[arg(long, value_name = "N", default_value_t = MOST)]
    max_delete: u64,
    #[command(flatten)]
    pub(crate) options: FilesOptions,
}

pub(crate) fn run(args: &RmArgs, context: &Context) -> Result<(), Fault> {
    let places = remote(&args.places)?;
    let mut visit = Visit::begin("rm", &places, (&args.options, false), context);
    visit.set("recursive", args.recursive);
    let removing = match (args.recursive, args.dir) {
        (true, _) => Removing::Tree(args.max_delete),
        (false, true) => Removing::Either,
        (false, false) => Removing::File,
    };
    visit.each(&places, |visit, files, place| {
        files.remove_as(&place.path, removing).map_err(explained)?;
        visit.record(&place.path, FileStatus::Removed);
        Ok(())
    })
}

/// The error with the option that permits more.
fn explained(error: Error) -> Error {
    match error.code {
        Code::IsDirectory => error.remedy("-r removes it with everything in it, -d only if it is empty"),
        Code::DirectoryNotEmpty => error.remedy("-r removes it with everything in it"),
        _ if error.message.contains("that many were removed") => error.remedy("--max-delete permits more"),
        _ => error,
    }
}
