//! `demo`: a real copy on this machine alone, between two processes over an emulated long fat link.

mod child;
mod scratch;
mod summary;
mod tcp;
mod testbed;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use farhaul_cc::Spec;
use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_units::{ByteSize, Rate, parse_duration};
use serde_json::{Value, json};

use super::Context;
use crate::exit::{Code, Fault};
use crate::options::path_record;
use crate::output::human::time;
use crate::output::json::start_record;
use crate::output::{Output, progress};
use crate::values::{share, some_rate};
use scratch::Scratch;
use summary::DemoResult;
use tcp::Tcp;
use testbed::Testbed;

/// Seeds of the two directions. Every run loses the same packets.
const SEEDS: (u64, u64) = (1, 2);
/// Time limit of the kernel's TCP: a multiple of Farhaul's time, and a minimum.
const PATIENCE: (u32, Duration) = (5, Duration::from_secs(15));
/// Interval of the sender's reports, for the bar and the curve.
const INTERVAL: &str = "100ms";

/// Demonstrate a copy over a long fat link, on this machine alone
///
/// Runs `farhaul serve` and `farhaul copy` as two processes, copies a file over a path like a link across a continent, and
/// reports the result. With root or user namespaces, the path connects two emulated hosts, and the kernel's TCP sends the
/// same file afterwards. Otherwise the path is a relay, which carries UDP only. Leaves nothing behind.
///
///     farhaul demo
///     farhaul demo --rtt 300ms --loss 0.1% --size 1GB
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct DemoArgs {
    /// File to copy [default: a temporary file of random bytes]
    file: Option<PathBuf>,
    /// Size of the temporary file
    #[arg(long, value_name = "SIZE", default_value = "400MB", conflicts_with = "file")]
    size: ByteSize,
    /// Rate of the link
    #[arg(long, value_name = "RATE", default_value = "1gbit", value_parser = some_rate)]
    rate: Rate,
    /// Round-trip time of the link
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_duration)]
    rtt: Duration,
    /// Share of packets lost, in each direction
    #[arg(long, value_name = "SHARE", default_value = "0.001%", value_parser = share)]
    loss: f64,
    /// Congestion controller and its options
    #[arg(long, value_name = "NAME[:K=V,…]", default_value = "union")]
    controller: Spec,
    /// Print JSON: a start record, the sender's intervals, and an end record with all figures
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &DemoArgs, context: &Context) -> Result<(), Fault> {
    let output = Output::from_flag(args.json);
    let demo = Demo { args, context, output: output.clone() };
    let outcome = demo.play();
    output.detach();
    let outcome = outcome.map_err(|fault| context.interrupt.fault().unwrap_or(fault))?;
    if args.json {
        output.record_value(&outcome.record());
    } else {
        outcome.lines(output.style()).iter().for_each(|line| output.print_line(line));
    }
    Ok(())
}

struct Demo<'a> {
    args: &'a DemoArgs,
    context: &'a Context,
    output: Output,
}

impl Demo<'_> {
    fn play(&self) -> Result<DemoResult, Fault> {
        let scratch = Scratch::make(self.args.file.is_none().then_some(self.args.size))?;
        let (file, digest) = self.file(&scratch)?;
        let size = file.metadata().map_err(|error| unreadable(&file, &error))?.len();
        self.output.print_line(&format!(
            "copying {} from one process to another, over a link of {} with an RTT of {} and {} loss",
            ByteSize(size),
            self.args.rate,
            time(self.args.rtt),
            crate::output::human::percent(self.args.loss)
        ));
        let mut testbed = self.testbed();
        self.begin(&file, size, &testbed);
        if let Some(warning) = testbed.warning(&self.paths())? {
            self.output.warn(&warning);
        }
        let root = scratch.inbox().to_string_lossy().into_owned();
        let settings = scratch.settings();
        let mut server = testbed.receiver(self.context, &settings, &["serve", "--json", "--root", &root])?;
        let local = server.wait_for("start")?["local"].as_str().unwrap_or_default().to_owned();
        let address = testbed.address_towards(&local, &self.output)?;
        let copied = self.copy(&testbed, &settings, (&file, size), &address);
        let received = copied.and_then(|copied| Ok((copied, server.wait_for("end")?)));
        drop(server);
        let compares = matches!(testbed, Testbed::Hosts { .. });
        let carrier = testbed.end()?;
        let ((copy, curve), serve) = received?;
        let arrived = scratch.inbox().join(file.file_name().unwrap_or_default());
        self.verify(&scratch, &arrived, digest, Code::Integrity)?;
        let took = Duration::try_from_secs_f64(copy["seconds"].as_f64().unwrap_or(0.0)).unwrap_or_default();
        let tcp = compares.then(|| self.tcp(&scratch, &file, size, took, digest)).transpose()?;
        let args = self.args;
        Ok(DemoResult {
            size,
            rate: args.rate,
            rtt: args.rtt,
            loss: args.loss,
            copy,
            serve,
            carrier: carrier.ok_or_else(|| Fault::new(Code::Failed, "nothing was carried"))?,
            curve,
            digest,
            tcp,
        })
    }

    /// Two hosts if possible. Otherwise a relay, with a line about the reason.
    fn testbed(&self) -> Testbed {
        let path = self.paths();
        Testbed::hosts(self.context, &path).unwrap_or_else(|fault| {
            let why = fault.message.split(';').next().unwrap_or_default().to_owned();
            self.output.print_line(&format!("the path is a relay, for UDP only, so TCP is not run: {why}"));
            Testbed::relay(path)
        })
    }

    /// Runs the kernel's TCP over a fresh copy of the path, which loses the same packets.
    fn tcp(
        &self,
        scratch: &Scratch,
        file: &Path,
        size: u64,
        took: Duration,
        digest: blake3::Hash,
    ) -> Result<Tcp, Fault> {
        let Testbed::Hosts { emulation, near, far } = Testbed::hosts(self.context, &self.paths())? else {
            return Err(Fault::new(Code::Failed, "no hosts for the kernel's TCP"));
        };
        self.output.print_line("the kernel's TCP sends the same file over the same path");
        // Reuse the space of the verified copy.
        let target = scratch.inbox().join(file.file_name().unwrap_or_default());
        let bdp = self.args.rate.bytes_in(self.args.rtt);
        let patience = (took * PATIENCE.0).max(PATIENCE.1);
        let tcp = tcp::run(self.context, &self.output, (emulation, near, far), (file, &target), (size, bdp, patience))?;
        if tcp.complete {
            self.verify(scratch, &target, digest, Code::Failed)?;
        }
        Ok(tcp)
    }

    /// Checks that the file at `copy` has this digest.
    fn verify(&self, scratch: &Scratch, copy: &Path, digest: blake3::Hash, code: Code) -> Result<(), Fault> {
        let arrived = scratch.hash(copy)?;
        if arrived == digest {
            return Ok(());
        }
        Err(Fault::new(code, format!("the copy has the digest {arrived}, the file {digest}; this is a defect")))
    }

    /// Writes the `start` record.
    fn begin(&self, file: &Path, size: u64, testbed: &Testbed) {
        let settings = json!({
            "file": file.to_string_lossy(),
            "bytes": size,
            "controller": self.args.controller.to_string(),
            "path": testbed.name(),
            "up": path_record(&self.path(SEEDS.0)),
            "down": path_record(&self.path(SEEDS.1)),
        });
        self.output.record_value(&start_record("demo", json!({ "settings": settings })));
    }

    /// The file to copy, and its digest.
    fn file(&self, scratch: &Scratch) -> Result<(PathBuf, blake3::Hash), Fault> {
        match &self.args.file {
            Some(file) => Ok((file.clone(), scratch.hash(file)?)),
            None => {
                self.output.print_line(&format!(
                    "making a file of {} of random bytes in {}",
                    self.args.size,
                    scratch.path().display()
                ));
                scratch.make_file(self.args.size, &self.context.interrupt)
            }
        }
    }

    /// The paths to the receiver and back.
    fn paths(&self) -> [PathSpec; 2] {
        [self.path(SEEDS.0), self.path(SEEDS.1)]
    }

    fn path(&self, seed: u64) -> PathSpec {
        PathSpec {
            rate: Some(self.args.rate),
            delay: self.args.rtt / 2,
            queue: QueueSize::Bdp(self.args.rtt),
            loss: (self.args.loss > 0.0).then_some(LossSpec::Bernoulli(self.args.loss)),
            seed,
            ..PathSpec::default()
        }
    }

    /// Runs the sending process. Returns its `end` record, and the goodput of each interval.
    fn copy(
        &self,
        testbed: &Testbed,
        settings: &Path,
        (file, size): (&Path, u64),
        address: &str,
    ) -> Result<(Value, Vec<u64>), Fault> {
        let file = file.to_string_lossy();
        let (to, controller) = (format!("udt://{address}/"), self.args.controller.to_string());
        // Every demonstration is the first one over its path.
        let options = ["copy", "--json", "--no-path-memory", "--interval", INTERVAL, "--controller", &controller];
        let key = ["--host-key-policy", "accept-new", "--", &file, &to];
        let mut copy = testbed.sender(self.context, settings, &[&options[..], &key].concat())?;
        let bar = progress::bar(Some(size));
        self.output.attach(bar.clone());
        let mut curve = Vec::new();
        loop {
            let record = copy.next()?;
            match record["event"].as_str() {
                Some("interval") => {
                    self.output.record_value(&record);
                    bar.set_position(record["bytes_total"].as_u64().unwrap_or(0).min(size));
                    bar.set_prefix(format!(
                        "RTT {}",
                        time(Duration::from_micros(record["rtt_us"].as_u64().unwrap_or(0)))
                    ));
                    curve.push(record["goodput_bps"].as_u64().unwrap_or(0));
                }
                Some("end") => {
                    self.output.detach();
                    return match record["error"]["message"].as_str() {
                        None => Ok((record, curve)),
                        Some(message) => Err(Fault::new(Code::Failed, format!("the copy failed: {message}"))),
                    };
                }
                _ => {}
            }
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Fault {
    Fault::new(Code::FilesFailed, format!("cannot read {}: {error}", path.display()))
}

impl DemoResult {
    /// The `end` record.
    fn record(&self) -> Value {
        json!({
            "event": "end",
            "bytes": self.size,
            "rate_bps": self.rate.bits_per_second(),
            "rtt_us": farhaul_transfer::internal::report::micros(self.rtt),
            "loss": self.loss,
            "capacity_share": self.capacity_share(),
            "ideal_seconds": self.ideal().as_secs_f64(),
            "digest": self.digest.to_string(),
            "verified": true,
            "exit_code": 0,
            "error": null,
            "copy": self.copy,
            "serve": self.serve,
            (self.carrier.name): self.carrier.record,
            "tcp": self.tcp.as_ref().map(Tcp::record),
        })
    }
}
