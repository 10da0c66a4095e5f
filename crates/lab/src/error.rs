//! What can be wrong with a scenario, and what can go wrong while it runs.

use std::io;
use std::path::{Path, PathBuf};

/// A scenario that cannot be run: where it says so, what is wrong, what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct ScenarioError {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there, and what is allowed.
    pub message: String,
}

/// Why the lab could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The scenario is at fault.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// There is no such figure.
    #[error(
        "there is no figure '{name}': `farhaul lab list` names all of them, and a scenario file ends in .toml{nearest}"
    )]
    NoFigure {
        /// What was asked for.
        name: String,
        /// A hint, or nothing.
        nearest: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of earlier results is not what it should be.
    #[error("{}:{line}: {message}", path.display())]
    Store {
        /// Which.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// It was told to stop.
    #[error("stopped before everything was run; the same command goes on from there")]
    Stopped,
    /// There are no networks to emulate here.
    #[error("{0}; --world sim needs neither")]
    Emulate(#[from] farhaul_emu::EmulateError),
    /// The experiment cannot be run in this world.
    #[error("{reason}")]
    Refused {
        /// Why, and what to do.
        reason: String,
    },
    /// A run broke off: a defect of its world or of what ran there.
    #[error("the run {name} broke off: {reason}")]
    Broken {
        /// Which run.
        name: String,
        /// What it said.
        reason: String,
    },
}

impl LabError {
    /// The error of a file.
    pub fn file(path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::File { path: path.as_ref().to_owned(), source }
    }
}
