//! `lab report`: one page about all results in a folder.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Args;
use farhaul_lab::{folder, report};

use crate::exit::{Code, Fault};
use crate::output::print;

/// The page's name in the folder.
const PAGE: &str = "report.html";

/// Write one page about all results in a folder
#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// Output folder of `lab run` or `lab sweep`
    #[arg(default_value = super::OUT)]
    dir: PathBuf,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
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
    let page = args.dir.join(PAGE);
    fs::write(&page, report::page(&results)).map_err(|source| super::file_fault(&page, &source))?;
    print(&format!("{}\n", page.display()));
    if args.open {
        let viewer = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        let opened = Command::new(viewer).arg(&page).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        opened.map_err(|error| {
            Fault::new(Code::Failed, format!("cannot run {viewer} ({error}); open {} in a browser", page.display()))
        })?;
    }
    Ok(())
}
