//! Errors of scenarios and of runs.

use std::io;
use std::path::{Path, PathBuf};

use farhaul_cc::ControllerFailure;

/// A scenario that cannot be run: the place of the mistake, the mistake, and the allowed values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct ScenarioError {
    /// The file, as the user named it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The mistake and the allowed values.
    pub message: String,
}

/// An error of the lab.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// A mistake in the scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// No figure has this name.
    #[error(
        "there is no figure '{name}'{nearest}: `farhaul lab list` lists all, and the name of a scenario file ends in .toml"
    )]
    NoFigure {
        /// The name that was asked for.
        name: String,
        /// A hint, or nothing.
        nearest: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file of earlier results is damaged or is something else.
    #[error("{}:{line}: {message}", path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The mistake.
        message: String,
    },
    /// Another program adds to these results.
    #[error("{}: another run adds its results here: wait for its end, or choose another folder", .0.display())]
    InUse(PathBuf),
    /// The user stopped the program.
    #[error("stopped before all runs were done; the same command continues from there")]
    Stopped,
    /// This machine cannot emulate networks.
    #[error("{0}; --world sim needs neither")]
    Emulate(#[from] farhaul_emu::EmulateError),
    /// The experiment cannot run in this world.
    #[error("{reason}")]
    Refused {
        /// The reason and a remedy.
        reason: String,
    },
    /// The congestion controller of a flow has failed, so its figures would say nothing.
    #[error("flow '{flow}': {failure}")]
    Controller {
        /// The name of the flow.
        flow: String,
        /// Who failed, and how.
        failure: ControllerFailure,
    },
    /// A run failed, because of a defect of its world or of a program in it.
    #[error("the run {name} failed: {reason}")]
    Broken {
        /// The name of the run.
        name: String,
        /// The message of the defect.
        reason: String,
    },
}

impl LabError {
    /// The error of a file.
    pub fn file(path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::File { path: path.as_ref().to_owned(), source }
    }
}
