//! `protocols`: the list of wire protocols.

use clap::Args;
use farhaul::registry::Entry;
use farhaul_cc::Row;
use serde_json::{Value, json};

use super::listing;
use crate::exit::Fault;
use crate::options::SECRET;

/// Meaning of the secret of Tsunami's original programs.
const SECRET_OF_ORIGINALS: &str =
    "secret for original programs, kitten for those that were given none; also FARHAUL_TSUNAMI_SECRET";

/// List the wire protocols with their modes, options and sources
#[derive(Args, Debug)]
pub(crate) struct ProtocolsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ProtocolsArgs) -> Result<(), Fault> {
    let usage = "Use: --protocol NAME or --protocol NAME:OPTION=VALUE,… on both sides; the first is the default.";
    listing::print_all(&Entry::all(), args.json, record, describe, usage);
    Ok(())
}

fn describe(text: &mut String, entry: &Entry) {
    let source = (entry.source != "none").then(|| format!("source: {}", entry.source));
    let channel =
        entry.needs_control_channel.then(|| "with --plain, needs TCP beside UDP, on the same port number".to_owned());
    let controller = entry.controller.map_or_else(
        || "controller: none, its own rules govern the rate".to_owned(),
        |name| format!("controller: {name}, unless --controller names another"),
    );
    let facts: Vec<String> = source
        .into_iter()
        .chain([format!("modes: {}", modes(entry).join(", "))])
        .chain(channel)
        .chain([controller])
        .chain((entry.name == SECRET.0).then(|| format!("{}:{}=  {SECRET_OF_ORIGINALS}", SECRET.0, SECRET.1)))
        .collect();
    listing::describe(text, entry, entry.summary, &facts);
}

fn record(entry: &Entry) -> Value {
    let mut options = listing::options(entry);
    if entry.name == SECRET.0 {
        let (name, meaning) = (SECRET.1, SECRET_OF_ORIGINALS);
        options.push(json!({ "name": name, "meaning": meaning, "kind": "optional", "default": "" }));
    }
    json!({
        "name": entry.name,
        "summary": entry.summary,
        "source": listing::sources(entry.source),
        "modes": modes(entry),
        "control_channel": entry.needs_control_channel,
        "controller": entry.controller,
        "options": options,
    })
}

fn modes(entry: &Entry) -> Vec<&'static str> {
    entry.modes.iter().map(|mode| mode.name()).collect()
}
