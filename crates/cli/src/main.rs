//! The command `farhaul`.

use std::process::ExitCode;

fn main() -> ExitCode {
    farhaul_cli::Program::new().run()
}
