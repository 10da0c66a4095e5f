//! The simulator's TCP beside that of ns-2: equal goodput in a third of the time. `cargo xtask bench tcp`.
//!
//! Both simulate two nodes, one duplex link and one flow with the same settings. Packets of 1500 bytes carry 1460 bytes
//! of data, and each is acknowledged with 40 bytes. A handshake of one RTT comes first, then an initial window of two
//! packets. The clock has ticks of 10 ms, time-outs last at least 200 ms, and the receiver's window is a million
//! packets. Only data is lost, behind the queue. ns-2 is the Debian package `ns2` with its own defaults for everything
//! else.
//!
//! | to | open |
//! | --- | --- |
//! | change the comparison or its limits | `ns2/goodput.rs`, `ns2/speed.rs` |
//! | compare laws with those of the Linux kernel: `cargo xtask interop --ns2` | `ns2/laws.rs` |
//! | change how either is run | `ns2/tools.rs`, `ns2/tcp.tcl`, `crates/sim/examples/tcp.rs` |

mod goodput;
mod laws;
mod speed;
mod statistics;
mod tools;

use anyhow::{Result, bail, ensure};

use super::machine;
use crate::clock::Stopwatch;
use crate::workspace::Workspace;
use tools::Tools;

const USAGE: &str = "bench tcp [--only goodput|speed] [--quick]";

/// The parts of the comparison to run.
#[derive(Clone, Copy, Debug)]
struct Extent {
    goodput: bool,
    speed: bool,
    /// A run as short as possible, to test the procedure. Nothing is judged.
    quick: bool,
}

/// `bench tcp`.
pub(super) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let extent = parse(arguments)?;
    let tools = Tools::build(workspace)?;
    let stopwatch = Stopwatch::start();
    for (name, value) in machine::describe(workspace) {
        println!("{name:<10} {value}");
    }
    let mut unmet = 0;
    if extent.goodput {
        unmet += goodput::run(&tools, extent.quick)?;
    }
    if extent.speed {
        unmet += speed::run(&tools, extent.quick)?;
    }
    println!("\n{unmet} unmet, {:.0} s", stopwatch.elapsed().as_secs_f64());
    ensure!(unmet == 0 || extent.quick, "{unmet} requirements do not hold");
    Ok(())
}

/// `interop --ns2 [LAW …] [--quick]`: the laws beside those of the Linux kernel, all or some, at both rates or the lower one.
pub(crate) fn compare_laws(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let (options, laws): (Vec<String>, Vec<String>) =
        arguments.iter().cloned().partition(|word| word.starts_with("--"));
    let quick = options.iter().any(|option| option == "--quick");
    ensure!(options.len() == usize::from(quick), "interop --ns2 [LAW …] [--quick]");
    laws::run(&Tools::build(workspace)?, &laws, quick)?;
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Extent> {
    let mut extent = Extent { goodput: true, speed: true, quick: false };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => extent.quick = true,
            "--only" => match arguments.next().map(String::as_str) {
                Some("goodput") => extent.speed = false,
                Some("speed") => extent.goodput = false,
                _ => bail!("--only takes goodput or speed; {USAGE}"),
            },
            _ => bail!("unknown argument '{argument}'; {USAGE}"),
        }
    }
    Ok(extent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_choose_the_part_and_mistakes_are_named() {
        let parse = |line: &str| parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert!(parse("").is_ok_and(|extent| extent.goodput && extent.speed && !extent.quick));
        assert!(parse("--only speed --quick").is_ok_and(|extent| !extent.goodput && extent.quick));
        assert!(parse("--only nosuch").is_err() && parse("--nosuch").is_err());
    }
}
