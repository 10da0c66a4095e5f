//! Copies files and trees over SSH, with a progress line of its own: `cargo run --example copy_tree -- data far.example:backup/`.
//! The remote host needs the program `farhaul`; `FARHAUL_SSH` and `FARHAUL_REMOTE_PATH` work as for the command.

use std::env;

use farhaul_transfer::{CopyJob, Environment, Error, Event, Location, Ssh};

fn main() -> Result<(), Error> {
    let places = env::args().skip(1).map(|place| place.parse()).collect::<Result<Vec<Location>, _>>()?;
    let mut ssh = Ssh::default();
    if let Ok(command) = env::var("FARHAUL_SSH") {
        ssh.command = command.split(' ').map(ToOwned::to_owned).collect();
    }
    ssh.remote_path = env::var("FARHAUL_REMOTE_PATH").ok();
    let environment = Environment::reporting_to(|event: &Event<'_>| match event {
        Event::Moved(moved) => eprint!("\r{:>10} kB", moved.bytes() / 1_000),
        Event::Placed(entry, digest, _) => eprintln!("\r{} is there, BLAKE3 {digest}", entry.path),
        Event::Failed(path, failure, _) => eprintln!("\r{path} was not copied: {failure}"),
        Event::Warning(message) | Event::Note(message) => eprintln!("\r{message}"),
        _ => {}
    });
    let report = CopyJob::new(&places, true)?.with_ssh(ssh).run(&environment)?;
    eprintln!("\r{} files, {} bytes in {:.2} s", report.files.unwrap_or(0), report.bytes, report.seconds);
    // The peers may learn of the end in the background.
    farhaul::wait_idle();
    Ok(())
}
