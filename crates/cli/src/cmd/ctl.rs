//! `ctl`: lists the running programs of this user, and controls one.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use farhaul_units::ByteSize;
use serde_json::Value;

use crate::ctl::{Request, call, folder};
use crate::exit::{Code, Fault};
use crate::output::human::{self, plural, time};
use crate::output::{print, print_json};

/// List running copies, commands (rsh), pipes and servers of this user, or control one
///
///     farhaul ctl                     # list them
///     farhaul ctl 4711                # the state of one
///     farhaul ctl 4711 rate 50mbit    # cap its rate both ways; off: no cap
///     farhaul ctl pause               # without a number: the one that runs
///
/// Each listens on a socket that only this user can open: $XDG_RUNTIME_DIR/farhaul/PID.sock, or /tmp/farhaul-UID/PID.sock.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct CtlArgs {
    /// The process, as the list has it [default: the one that runs]
    #[arg(value_name = "PID")]
    pid: Option<u32>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Option<Request>,
}

pub(crate) fn run(args: &CtlArgs) -> Result<(), Fault> {
    let folder = folder().map_err(|error| {
        Fault::new(Code::NotPermitted, format!("running programs cannot be found: {error}"))
            .remedy("set XDG_RUNTIME_DIR to a folder of this user, for them and for this command")
    })?;
    let path = match (args.pid, args.command) {
        (None, None) => {
            for (_, status) in running(&folder)? {
                show(&status, args.json);
            }
            return Ok(());
        }
        (None, Some(_)) => the_only_one(&folder)?,
        (Some(pid), _) => folder.join(format!("{pid}.sock")),
    };
    let answer = call(&path, args.command.unwrap_or(Request::Status)).map_err(|error| gone(&path, &error))?;
    if answer["ok"] != true {
        let error = answer["error"].as_str().unwrap_or("it does not understand this command");
        return Err(Fault::new(Code::Failed, error));
    }
    show(&answer["status"], args.json);
    Ok(())
}

/// The running programs with their states, by their numbers. Sockets of those that are gone are removed.
fn running(folder: &Path) -> Result<Vec<(PathBuf, Value)>, Fault> {
    let mut running = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "sock") {
            continue;
        }
        match call(&path, Request::Status) {
            Ok(answer) => running.push((path, answer["status"].clone())),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => drop(fs::remove_file(&path)),
            // It is about to end, or busy.
            Err(_) => {}
        }
    }
    running.sort_by_key(|(_, status)| status["pid"].as_u64());
    Ok(running)
}

fn the_only_one(folder: &Path) -> Result<PathBuf, Fault> {
    let mut running = running(folder)?;
    match (running.pop(), running.len()) {
        (Some((path, _)), 0) => Ok(path),
        (None, _) => Err(Fault::new(Code::Failed, "no copy, pipe or server of this user is running")),
        (Some(_), more) => Err(Fault::usage(format!("{} are running", more + 1))
            .remedy("give the number of one, as `farhaul ctl` lists them")),
    }
}

fn gone(path: &Path, error: &io::Error) -> Fault {
    let pid = path.file_stem().unwrap_or_default().to_string_lossy();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            Fault::new(Code::Failed, format!("process {pid} is no running copy, command, pipe or server of this user"))
                .remedy("`farhaul ctl` lists them; requests such as cat are not among them")
        }
        _ => Fault::new(Code::Failed, format!("process {pid} does not answer: {error}")),
    }
}

fn show(status: &Value, json: bool) {
    if json { print_json(status) } else { print(&format!("{}\n", line(status))) }
}

/// A state in a line. What an older or newer program leaves out is left out here.
fn line(status: &Value) -> String {
    let number = |name: &str| status[name].as_u64();
    let rate = |name: &str| number(name).map(|rate| human::rate(Some(rate)));
    let size = |name: &str| number(name).map(|bytes| ByteSize(bytes).to_string());
    let of = |part: Option<String>, whole: Option<String>| match (part, whole) {
        (Some(part), Some(whole)) => Some(format!("{part} of {whole}")),
        (part, _) => part,
    };
    let parts = [
        of(size("bytes"), size("bytes_total")),
        of(number("files").map(|files| files.to_string()), number("files_total").map(|files| files.to_string()))
            .map(|files| format!("files: {files}")),
        number("sessions_running").map(|sessions| format!("{} running", plural(sessions, "session"))),
        rate("rate_bps"),
        number("seconds_left").map(|left| format!("{} left", time(Duration::from_secs(left)))),
        status["waiting_for"].as_str().map(str::to_owned),
        rate("rate_cap_bps").map(|cap| format!("capped at {cap}")),
        (status["paused"] == true).then(|| "paused".to_owned()),
        (status["stopping"] == true).then(|| "stopping".to_owned()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let text = |name: &str| status[name].as_str().unwrap_or("?");
    format!("{}  {} {}: {}", number("pid").unwrap_or(0), text("verb"), text("what"), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_state_is_a_line_with_what_is_known() {
        let status = json!({
            "pid": 12, "verb": "copy", "what": "tree to far:", "bytes": 5_000_000, "bytes_total": 20_000_000, "files": 3,
            "files_total": null, "rate_bps": 8_000_000, "seconds_left": 15, "rate_cap_bps": 50_000_000, "paused": true,
        });
        let expected = "12  copy tree to far:: 5.00 MB of 20.0 MB, files: 3, 8.00 Mbit/s, 15.0 s left, capped at 50.0 Mbit/s, paused";
        assert_eq!(line(&status), expected);
        assert_eq!(line(&json!({})), "0  ? ?: ");
    }
}
