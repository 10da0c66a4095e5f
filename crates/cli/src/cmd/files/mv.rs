//! `mv`: another name for an entry on another host.

use clap::Args;
use farhaul_session::{NodeKind, own_name};
use farhaul_transfer::{Error, RemoteFiles, RemotePlace};

use super::{Visit, remote};
use crate::cmd::Context;
use crate::exit::{Code, Fault};
use crate::options::FilesOptions;
use crate::output::json::FileStatus;
use crate::values::{Location, location};

/// Rename a file or directory of another host
///
/// Both places are on one host. Into an existing directory, the entry moves under its own name. Missing directories are made, and a file
/// of the new name is replaced. The line of a client's key needs `write` for the new place and `delete` for the old one.
///
///     farhaul mv far.example:run42/part far.example:run42/done
///     farhaul mv udt://host:9000/in/a udt://host:9000/archive/
#[derive(Args, Debug)]
#[command(verbatim_doc_comment, override_usage = "farhaul mv [OPTIONS] PLACE PLACE")]
pub(crate) struct MvArgs {
    /// The entry, and its new place
    #[arg(required = true, num_args = 2, value_name = "PLACE", value_parser = location())]
    pub(crate) places: Vec<Location>,
    /// Fail if something has the new name
    #[arg(short, long)]
    no_clobber: bool,
    #[command(flatten)]
    pub(crate) options: FilesOptions,
}

pub(crate) fn run(args: &MvArgs, context: &Context) -> Result<(), Fault> {
    let places = remote(&args.places)?;
    let [from, to] = &places[..] else { return Err(Fault::usage("give an entry and its new place")) };
    if from.host != to.host {
        return Err(Fault::usage(format!("{from} and {to} are on different hosts"))
            .remedy("`farhaul copy` copies between hosts, and `farhaul rm` removes the source afterwards"));
    }
    let mut visit = Visit::begin("mv", &places, (&args.options, false), context);
    visit.set("no_clobber", args.no_clobber);
    let needs_directory = match &args.places[1] {
        Location::Remote(place) => place.is_directory,
        Location::Ssh(place) => place.is_directory(),
        _ => false,
    };
    visit.each(std::slice::from_ref(from), |visit, files, from| {
        let target = target(files, from, to, needs_directory)?;
        files.rename_as(&from.path, &target, !args.no_clobber)?;
        visit.record(&target, FileStatus::Renamed);
        Ok(())
    })
}

/// The new path of an entry: in `to`, if that is a directory.
fn target(files: &RemoteFiles, from: &RemotePlace, to: &RemotePlace, needs_directory: bool) -> Result<Vec<u8>, Error> {
    let is_directory = needs_directory
        || match files.stat(&to.path) {
            Ok(info) => info.kind == NodeKind::Directory,
            Err(error) if matches!(error.code, Code::NotFound | Code::NotDirectory) => false,
            Err(error) => return Err(error),
        };
    match own_name(&from.path) {
        Some(name) if is_directory => Ok([&to.path, &b"/"[..], name].concat()),
        _ => Ok(to.path.clone()),
    }
}
