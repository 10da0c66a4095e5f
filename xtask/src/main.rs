//! Chores of the workspace that need logic: `cargo xtask VERB`.
//!
//! The table below is all there is; each verb has its file. Nothing here uses the crates of the workspace, so that the
//! chores build in seconds and work while the code does not.
#![forbid(unsafe_code)]

mod bench;
mod citations;
mod clock;
mod interop;
mod packages;
mod sections;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use workspace::Workspace;

/// What can be asked for: name, function, help.
const VERBS: &[Verb] = &[
    Verb { name: "test", run: test::run, help: "everything that must hold before a merge" },
    Verb { name: "tidy", run: tidy::run, help: "crate graph against its file of allowed edges, names, links, lengths" },
    Verb { name: "citations", run: citations::run, help: "what the code cites, and that the bibliography knows it" },
    Verb { name: "interop", run: interop::run, help: "the tests against the reference library alone" },
    Verb { name: "bench", run: bench::run, help: "what must be reached, measured beside the peers: bench --list" },
];

/// One chore.
struct Verb {
    name: &'static str,
    run: fn(&Workspace, &[String]) -> anyhow::Result<()>,
    help: &'static str,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(verb) = arguments.first().and_then(|name| VERBS.iter().find(|verb| verb.name == name)) else {
        eprintln!("usage: cargo xtask VERB");
        for verb in VERBS {
            eprintln!("  {:<10} {}", verb.name, verb.help);
        }
        return ExitCode::from(2);
    };
    match Workspace::read().and_then(|workspace| (verb.run)(&workspace, &arguments[1..])) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {}: {error:#}", verb.name);
            ExitCode::FAILURE
        }
    }
}
