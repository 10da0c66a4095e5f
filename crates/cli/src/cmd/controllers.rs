//! `controllers`: the list of congestion controllers.

use clap::Args;
use farhaul_cc::registry::{Entry, controllers};
use serde_json::{Value, json};

use super::listing;
use crate::exit::Fault;

/// List the congestion controllers with their options and sources
#[derive(Args, Debug)]
pub(crate) struct ControllersArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ControllersArgs) -> Result<(), Fault> {
    let usage = "Use: --controller NAME or --controller NAME:OPTION=VALUE,…; the first is the default.";
    listing::print_all(&controllers(), args.json, record, describe, usage);
    Ok(())
}

fn describe(text: &mut String, entry: &Entry) {
    let source = (entry.source != "none").then(|| format!("source: {}", entry.source));
    listing::describe(text, entry, entry.summary, source.as_slice());
}

fn record(entry: &Entry) -> Value {
    json!({
        "name": entry.name,
        "summary": entry.summary,
        "source": listing::sources(entry.source),
        "options": listing::options(entry),
    })
}
