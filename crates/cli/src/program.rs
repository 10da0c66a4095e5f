//! The program as a library: `farhaul`, and more congestion controllers.

use std::process::ExitCode;

use farhaul_cc::{Registration, RegistrationError};

use crate::exit::Fault;
use crate::output::{JsonTo, Output};
use crate::run::run;

/// The command `farhaul`, for a `main` of another crate.
///
/// ```no_run
/// use farhaul_cc::{Registration, Spec};
///
/// fn main() -> std::process::ExitCode {
///     let mine = Registration::new("mine", "Reno under another name", |_settings, seed| {
///         Ok("reno".parse::<Spec>()?.build(seed))
///     });
///     farhaul_cli::Program::new().controller(mine).run()
/// }
/// ```
#[derive(Debug, Default)]
pub struct Program {
    refused: Option<RegistrationError>,
}

impl Program {
    /// The command as it is.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a congestion controller. Every verb, settings file and scenario knows its name. Only this program does: the other
    /// end of a transfer has its own controllers, and over ssh that end is the installed `farhaul`.
    #[must_use]
    pub fn controller(mut self, controller: Registration) -> Self {
        self.refused = self.refused.or(controller.register().err());
        self
    }

    /// Runs the command line of this process. Returns its exit code (docs/book/exit-codes.md).
    ///
    /// A controller that cannot have its name is a wrong command line, exit code 2.
    pub fn run(self) -> ExitCode {
        if let Some(refused) = self.refused {
            let fault = Fault::usage(refused.to_string());
            Output::new(JsonTo::Nowhere).error(&fault);
            return ExitCode::from(fault.code.exit());
        }
        run()
    }
}
