//! Runs between real sockets get the open files that they need, or report how many are missing. This is a program of
//! its own, because limits apply to a whole program. It needs root, at least in a user namespace, and TUN devices.

#[path = "../../emu/tests/emu/requirement.rs"]
mod requirement;

use farhaul_emu::EmulateError;
use farhaul_lab::run::run;
use farhaul_lab::world::{Choices, Venue};
use farhaul_lab::{Experiment, LabError, Overrides};
use requirement::skip;
use rustix::process::{Resource, Rlimit, setrlimit};

/// 20 flows of each kind between two hosts.
const SCENARIO: &str = "title = 'x'\nduration = '300ms'\n[link]\nrate = '40mbit'\nrtt = '10ms'\n\
                        [[flow]]\nname = 'udt'\ncount = 20\n[[flow]]\nname = 'tcp'\nprotocol = 'tcp'\ncount = 20\n\
                        [[flow]]\nname = 'cbr'\nprotocol = 'cbr'\nrate = '100kbit'\ncount = 20\n";
/// The open files that they need: two hosts of 2, flows of 10, 3 and 2, and 64 others.
const NEEDED: u64 = 2 * 2 + 20 * (10 + 3 + 2) + 64;

#[test]
fn a_run_gets_the_open_files_that_it_takes_or_is_refused_before_it_begins() {
    let limit = |current, maximum| {
        setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: Some(maximum) }).unwrap();
    };
    let venue = Venue::Emulator(Choices::default());
    let experiment = Experiment::read("x", "x.toml", SCENARIO, &Overrides::default()).unwrap();
    let jobs = experiment.jobs("").unwrap();
    limit(64, NEEDED);
    match run("x", &jobs[0], &venue, None, &|| false) {
        Err(LabError::Emulate(error @ (EmulateError::NoPermission(_) | EmulateError::NoTun(_)))) => {
            skip(error).unwrap_or_default()
        }
        result => drop(result.unwrap()),
    }
    limit(64, NEEDED - 1);
    let Err(LabError::Refused { reason }) = run("x", &jobs[0], &venue, None, &|| false) else { panic!("it began") };
    assert!(reason.contains(&format!("need {NEEDED} open files, and {} are allowed", NEEDED - 1)), "{reason}");
    let (possible, refusals) = venue.possible(&experiment, jobs);
    assert!(possible.is_empty() && refusals[0].message.contains("open files"), "{refusals:?}");
}
