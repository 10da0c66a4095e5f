//! Checks beyond the compiler: crate graph, budgets of lines, names, left-overs and links. Also lists the longest files and functions.

mod budget;
mod graph;
mod leftovers;
mod length;
mod links;

use anyhow::{Result, ensure};

pub(crate) use self::budget::Budgets;

use crate::sections::CheckStatus;
use crate::workspace::Workspace;

/// The verb `tidy`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    ensure!(arguments.is_empty(), "`tidy` takes no arguments");
    check(workspace).map(drop)
}

/// Prints the graph and the longest files and functions.
///
/// # Errors
/// A check failed.
pub(crate) fn check(workspace: &Workspace) -> Result<CheckStatus> {
    let mut faults = graph::faults(workspace)?;
    faults.extend(budget::faults(workspace)?);
    faults.extend(leftovers::faults(workspace)?);
    faults.extend(links::faults(workspace)?);
    length::show(workspace)?;
    faults.iter().for_each(|fault| println!("fault: {fault}"));
    ensure!(faults.is_empty(), "{} things are out of place", faults.len());
    Ok(CheckStatus::Passed)
}
