//! `mkdir`: directories on another host.

use clap::Args;

use super::{Visit, remote};
use crate::cmd::Context;
use crate::exit::Fault;
use crate::options::FilesOptions;
use crate::output::json::FileStatus;
use crate::values::{Location, location};

/// Make directories on another host
///
///     farhaul mkdir -p far.example:run42/plots/large
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct MkdirArgs {
    /// Directories
    #[arg(required = true, value_name = "PLACE", value_parser = location())]
    pub(crate) places: Vec<Location>,
    /// Make missing directories on the way, and accept one that exists
    #[arg(short, long)]
    parents: bool,
    #[command(flatten)]
    pub(crate) options: FilesOptions,
}

pub(crate) fn run(args: &MkdirArgs, context: &Context) -> Result<(), Fault> {
    let places = remote(&args.places)?;
    let mut visit = Visit::begin("mkdir", &places, (&args.options, false), context);
    visit.set("parents", args.parents);
    visit.each(&places, |visit, files, place| {
        if files.create_dir(&place.path, args.parents)? {
            visit.record(&place.path, FileStatus::Made);
        }
        Ok(())
    })
}
