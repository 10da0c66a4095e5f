//! The command `farhaul`: bulk data over UDP for long fat networks.
//!
//! | to change … | open |
//! | --- | --- |
//! | verbs, options, how values are read | `cli.rs`, `cli/` |
//! | what a verb does | `cmd/VERB.rs` |
//! | exit codes and error lines | `exit.rs`, `fault.rs` |
//! | what is printed: words, JSON records, the progress bar | `output/` |
//! | how a session runs on a stream, what is measured | `host.rs`, `host/` |
//! | signals | `interrupt.rs` |

mod cli;
mod cmd;
mod exit;
mod fault;
mod host;
mod interrupt;
mod output;
mod sys;

use std::process::ExitCode;

use clap::Parser;

use cli::Cli;
use cmd::Context;
use exit::{Code, Fault};
use output::{JsonTo, Output};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = Context::begin().and_then(|context| cmd::run(cli.verb, &context));
    farhaul::wait_for_farewells();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            Output::new(JsonTo::Nowhere).error(&fault);
            ExitCode::from(&fault)
        }
    }
}

impl From<std::io::Error> for Fault {
    /// For what the system refuses outright: threads, sockets of our own, temporary files.
    fn from(error: std::io::Error) -> Self {
        Self::new(Code::Failed, format!("the system refused: {error}"))
    }
}
