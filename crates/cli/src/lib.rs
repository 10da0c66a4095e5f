//! The command `farhaul`: bulk data over UDP for long fat networks.
//!
//! It is a library so that a program can be `farhaul` with [more congestion controllers](Program::controller). The binary is
//! [`Program::new`] and [`run`](Program::run).
//!
//! | to change … | open |
//! | --- | --- |
//! | the program as a library, and the steps of a run | `program.rs`, `run.rs` |
//! | verbs | `cli.rs`, `cli/` |
//! | options that verbs share | `options/` |
//! | how values are read | `values/` |
//! | the work of a verb | `cmd/VERB.rs` |
//! | copies, servers of directories, keys | the crate `farhaul-transfer`; the program that ssh starts: `cmd/bootstrap.rs` |
//! | settings in files, `--show-config` | `config.rs`, `config/` |
//! | exit codes | `exit.rs` |
//! | output: words, JSON records, the progress bar | `output/` |
//! | signals | `interrupt.rs`, `reloading.rs` |
//! | what a daemon gives up | `privileges.rs` |
#![cfg_attr(
    not(feature = "originals"),
    allow(dead_code, unused_imports, unused_variables, reason = "sessions with original programs alone use it")
)]

mod cli;
mod cmd;
mod config;
mod ctl;
mod exit;
mod fault;
mod interrupt;
mod metrics;
mod options;
mod output;
mod privileges;
mod program;
mod reloading;
mod run;
mod sys;
mod values;

pub use program::Program;
