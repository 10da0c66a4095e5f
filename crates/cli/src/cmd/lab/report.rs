//! `lab report`: all results in a folder as one page.

use std::path::PathBuf;

use clap::Args;
use farhaul_lab::folder;

use crate::exit::{Code, Fault};
use crate::output::print;

/// The page's name in the folder.
const PAGE: &str = "report.html";

/// Make one page of all results in a folder
#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// The folder that `lab run` or `lab sweep` wrote to
    #[arg(default_value = super::OUT)]
    dir: PathBuf,
}

pub(super) fn run(args: &ReportArgs) -> Result<(), Fault> {
    let failed = |error: &farhaul_lab::LabError| Fault::new(Code::Failed, error.to_string());
    let results = folder::results(&args.dir).map_err(|error| failed(&error))?;
    if results.is_empty() {
        return Err(Fault::usage(format!(
            "{} holds no results: `farhaul lab run --quick --out {}` makes some",
            args.dir.display(),
            args.dir.display()
        )));
    }
    let _ = (PAGE, print);
    Err(Fault::new(Code::Failed, "pages are not available in this build yet"))
}
