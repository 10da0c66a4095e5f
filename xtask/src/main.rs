//! Chores of the workspace that need logic: `cargo xtask VERB`.
//!
//! Each verb of the table below has its own file. Xtask uses no crate of the workspace, so it builds in seconds and
//! works even if the code does not compile.
#![forbid(unsafe_code)]

mod bench;
mod citations;
mod clock;
mod interop;
mod libudt;
mod packages;
mod packaging;
mod public_items;
mod python;
mod sections;
mod suite;
mod test;
mod tidy;
mod torture;
mod workspace;

use std::process::ExitCode;

use workspace::Workspace;

/// The verbs: name, function, help.
const VERBS: &[Verb] = &[
    Verb {
        name: "test",
        run: test::run,
        help: "run all checks required before a merge; --long: and before a release; --install: the packages they need",
    },
    Verb { name: "tidy", run: tidy::run, help: "check the crate graph, names and links, and list the longest files" },
    Verb {
        name: "public",
        run: public_items::run,
        help: "compare the public items of each crate with their files; --write",
    },
    Verb { name: "citations", run: citations::run, help: "list citations and check them against the bibliography" },
    Verb { name: "interop", run: interop::run, help: "run only the tests against the reference library" },
    Verb {
        name: "python",
        run: python::run,
        help: "build the Python package and run its tests: python [PYTEST ARGUMENTS]",
    },
    Verb { name: "libudt", run: libudt::run, help: "build the drop-in libudt.so.0; --release: an optimised one" },
    Verb { name: "torture", run: torture::run, help: "run the program under faults: torture --list" },
    Verb {
        name: "package",
        run: packaging::run,
        help: "make all packages in target/packages and try them; --check: only build each crate",
    },
    Verb { name: "bench", run: bench::run, help: "measure performance beside other programs: bench --list" },
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
