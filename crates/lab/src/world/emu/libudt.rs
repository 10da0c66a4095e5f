//! Flows of the reference library: at each end a program on libudt, the peer of the interoperability tests
//! (`interop/`).

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use farhaul_emu::HostId;
use farhaul_proto::Stats;
use farhaul_units::Duration;

use super::control::Trouble;
use super::{Ends, RunningFlow, Start, processor};

/// IP, UDP and UDT headers of a data packet, in bytes.
pub(super) const HEADER: u32 = 44;
/// Both buffers of a connection in bytes, and the flow window in packets, for 10 Gbit/s at 100 ms. Its own defaults
/// are 12 MB and 25 600.
const BUFFER: u32 = 128 << 20;
const WINDOW: u32 = 262_144;
/// The period of the receiver's reports, in seconds.
const INTERVAL: &str = "0.02";
/// The longest life of the programs after the run, in seconds, if nobody ends them.
const GRACE: f64 = 30.0;

struct LibudtFlow {
    packet: u64,
    /// The bytes that the receiving program has read.
    read: Arc<AtomicU64>,
    programs: [Child; 2],
}

pub(super) fn begin(start: &Start<'_>) -> Result<RunningFlow, Trouble> {
    let Start { scene, flow, hosts: [from, to], addresses, .. } = start;
    let Some(program) = scene.choices.libudt.as_deref() else {
        return Err(Trouble::Broken(format!("flow '{}' needs the program of libudt: name it by --libudt", flow.name)));
    };
    let (address, end) = (addresses[1].to_string(), start.end());
    let life = (scene.setup.duration.as_secs_f64() + GRACE).to_string();
    let settings = [
        ("--timeout", life),
        ("--mss", flow.packet.to_string()),
        ("--fc", WINDOW.to_string()),
        ("--sndbuf", BUFFER.to_string()),
        ("--rcvbuf", BUFFER.to_string()),
    ];
    let run = |host: HostId, wait: Duration, words: &[&str]| {
        let mut command = later(program, wait);
        command.args(words).args(settings.iter().flat_map(|(name, value)| [*name, value.as_str()]));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let what = format!("flow '{}': {}", flow.name, program.display());
        scene.emulation.spawn(host, &mut command).map_err(Trouble::of(&what))
    };
    let mut receiver = run(*to, Duration::ZERO, &["listen", &address, "recv", "--unchecked", "--interval", INTERVAL])?;
    let seconds = (end.saturating_sub(flow.start)).as_secs_f64().max(0.001).to_string();
    let mut sender =
        match run(*from, flow.start, &["connect", &address, "send", "--seconds", &seconds, "--linger", "0"]) {
            Ok(sender) => sender,
            Err(trouble) => {
                end_program(&mut receiver);
                return Err(trouble);
            }
        };
    let read = Arc::new(AtomicU64::new(0));
    let threads = vec![watch(&mut receiver, start, &read), watch(&mut sender, start, &Arc::default())];
    let ends = Box::new(LibudtFlow { packet: flow.packet.into(), read, programs: [receiver, sender] });
    Ok(RunningFlow { ends, meters: None, threads, ending: Arc::default() })
}

/// The program, started some time after this command.
fn later(program: &Path, wait: Duration) -> Command {
    if wait.is_zero() {
        return Command::new(program);
    }
    let mut command = Command::new("sh");
    command.args(["-c", "sleep \"$0\" && exec \"$@\"", &wait.as_secs_f64().to_string()]).arg(program);
    command
}

/// Reads a program's output until the program ends. An end before that of the flow is an error.
fn watch(program: &mut Child, start: &Start<'_>, read: &Arc<AtomicU64>) -> JoinHandle<()> {
    let (name, control, end, read) = (start.flow.name.clone(), start.control(), start.end(), Arc::clone(read));
    let (output, errors) = (program.stdout.take(), program.stderr.take());
    thread::spawn(move || {
        for line in output.map(BufReader::new).into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
            if let Some(bytes) = total(&line) {
                read.fetch_max(bytes, Ordering::Relaxed);
            } else if let Some(message) = failure(&line)
                && control.now() < end
            {
                control.fail(&name, message);
            }
        }
        let mut words = String::new();
        let _ = errors.map(|mut errors| errors.read_to_string(&mut words));
        if control.now() < end {
            let why = words.lines().next().unwrap_or("it ended");
            control.fail(&name, format!("libudt's program: {why}"));
        }
    })
}

/// The number of bytes in a line with a report.
fn total(line: &str) -> Option<u64> {
    let record: serde_json::Value = serde_json::from_str(line).ok()?;
    record.get("bytes_total").or_else(|| record.get("received_bytes"))?.as_u64()
}

/// The reason of a failure, in a line that has one.
fn failure(line: &str) -> Option<String> {
    let record: serde_json::Value = serde_json::from_str(line).ok()?;
    Some(record.get("error")?.get("message")?.as_str()?.to_owned())
}

fn end_program(program: &mut Child) {
    // The program may have ended by itself.
    let _ = program.kill();
    let _ = program.wait();
}

impl Ends for LibudtFlow {
    fn look(&self, _: [Stats; 2]) -> [Stats; 2] {
        let mut receiver = Stats::default();
        receiver.totals.bytes_read = self.read.load(Ordering::Relaxed);
        receiver.totals.bytes_received = receiver.totals.bytes_read;
        receiver.totals.packets_received = receiver.totals.bytes_read / (self.packet - u64::from(HEADER));
        [Stats::default(), receiver]
    }

    fn processor(&self) -> [Option<Duration>; 2] {
        let [receiver, sender] = [0, 1].map(|place| processor::of_program(self.programs[place].id()));
        [sender, receiver]
    }

    fn stop(&mut self) {
        self.programs.iter_mut().for_each(end_program);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_failures_are_read_from_the_programs_lines() {
        assert_eq!(total("{\"event\":\"interval\",\"connection\":0,\"clock_s\":5.1,\"bytes_total\":120}"), Some(120));
        assert_eq!(total("{\"role\":\"recv\",\"received_bytes\":7,\"rtt_ms\":1.5}"), Some(7));
        assert_eq!(total("listening 10.77.0.2:9000"), None);
        let failed = "{\"error\":{\"code\":1001,\"message\":\"connection setup failure\"}}";
        assert_eq!((total(failed), failure(failed).as_deref()), (None, Some("connection setup failure")));
    }

    #[test]
    fn a_flow_that_begins_later_is_a_program_that_is_started_later() {
        let mut command = later(Path::new("/bin/echo"), Duration::from_millis(1));
        let output = command.args(["a b", "c"]).output().unwrap();
        assert_eq!(output.stdout, b"a b c\n");
    }
}
