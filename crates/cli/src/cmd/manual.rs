//! `completions` and `man`, generated from the parser's table of options.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit::Fault;
use crate::output::print;

/// Prefix of a literal line: a command to type.
pub(crate) const LITERAL: &str = "    ";

/// Print a shell completion script
///
/// For instance: farhaul completions bash > ~/.local/share/bash-completion/completions/farhaul
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Print the manual page of the program or of one verb
///
/// For instance: farhaul man | man -l -
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// The verb
    verb: Option<String>,
}

pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> Result<(), Fault> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "farhaul", &mut script);
    print(&String::from_utf8_lossy(&script));
    Ok(())
}

pub(crate) fn man(args: &ManArgs, mut command: Command) -> Result<(), Fault> {
    command.build();
    let command = match &args.verb {
        None => command,
        Some(verb) => command
            .find_subcommand(verb)
            .cloned()
            .ok_or_else(|| Fault::usage(format!("there is no verb '{verb}'; `farhaul --help` lists them")))?,
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    print(&with_literals(&String::from_utf8_lossy(&page)));
    Ok(())
}

/// Marks literal lines, so that the formatter does not fill them like prose.
fn with_literals(page: &str) -> String {
    let mut text = String::with_capacity(page.len() + page.len() / 8);
    let mut is_literal = false;
    for line in page.lines() {
        if line.starts_with(LITERAL) != is_literal {
            is_literal = !is_literal;
            text.push_str(if is_literal { ".nf\n" } else { ".fi\n" });
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}
