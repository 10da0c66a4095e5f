//! The simulator's TCP beside ns-2's: the same goodput, in a third of the time. `cargo xtask bench tcp`.
//!
//! Both simulate two nodes, one duplex link and one flow, set alike: 1460 bytes of data in packets of 1500, an acknowledgement
//! of 40 bytes for each, two packets at first after a handshake of one round trip, a clock of 10 ms, time-outs of 200 ms at
//! least, a receiver with room for a million packets; data alone is lost, behind the queue. ns-2 is the Debian package
//! `ns2`, with its own defaults for everything else.
//!
//! | to | open |
//! | --- | --- |
//! | change what is compared, or when it holds | `ns2/goodput.rs`, `ns2/speed.rs` |
//! | change how either is run | `ns2/tools.rs`, `ns2/tcp.tcl`, `crates/sim/examples/tcp.rs` |

mod goodput;
mod speed;
mod statistics;
mod tools;

use anyhow::{Result, bail, ensure};

use super::machine;
use crate::clock::Stopwatch;
use crate::workspace::Workspace;
use tools::Tools;

const USAGE: &str = "bench tcp [--only goodput|speed] [--quick]";

/// How much is done.
#[derive(Clone, Copy, Debug)]
struct Extent {
    goodput: bool,
    speed: bool,
    /// As short as shows that the procedure works; nothing is judged.
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
            _ => bail!("'{argument}' is not known; {USAGE}"),
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
