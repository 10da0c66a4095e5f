//! `demo`: the main job on this machine alone: two processes, a long fat link between them, a real file.

mod child;
mod scratch;
mod summary;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::Args;
use farhaul_cc::Spec;
use farhaul_emu::{Relay, RelayReport};
use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_units::{ByteSize, Rate, parse_duration};
use serde_json::{Value, json};

use super::Context;
use crate::cli::{path_record, share, some_rate};
use crate::exit::{Code, Fault};
use crate::fault;
use crate::output::human::time;
use crate::output::{Output, has_written, print, progress};
use crate::sys::CpuSeconds;
use child::Child;
use scratch::Scratch;
use summary::Outcome;

/// The relay's seeds: the same packets are lost in every run, others in each direction.
const SEEDS: (u64, u64) = (1, 2);
/// How often the sender reports, for the bar and the curve.
const INTERVAL: &str = "100ms";

/// See a copy over a long fat link, on this machine alone
///
/// Starts `farhaul serve` and `farhaul copy` as two processes with a relay between them that behaves like a link across
/// a continent, copies a real file and tells how that went. Needs no privileges, no set-up and no other machine; leaves
/// nothing behind.
///
///     farhaul demo
///     farhaul demo --rtt 300ms --loss 0.1% --size 1GB
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct DemoArgs {
    /// The file to copy [default: one of random bytes is made]
    file: Option<PathBuf>,
    /// Size of the file that is made
    #[arg(long, value_name = "SIZE", default_value = "400MB", conflicts_with = "file")]
    size: ByteSize,
    /// Rate of the link
    #[arg(long, value_name = "RATE", default_value = "1gbit", value_parser = some_rate)]
    rate: Rate,
    /// Round-trip time of the link
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_duration)]
    rtt: Duration,
    /// Share of packets that the link loses, in both directions
    #[arg(long, value_name = "SHARE", default_value = "0.001%", value_parser = share)]
    loss: f64,
    /// Congestion controller with its options
    #[arg(long, value_name = "NAME[:K=V,…]", default_value = "udt")]
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
        has_written("end");
        print(&format!("{}\n", outcome.record()));
    } else {
        outcome.lines(output.style()).iter().for_each(|line| output.say(line));
    }
    Ok(())
}

struct Demo<'a> {
    args: &'a DemoArgs,
    context: &'a Context,
    output: Output,
}

/// The relay on its thread.
struct Link {
    address: String,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<std::io::Result<(RelayReport, CpuSeconds)>>,
}

impl Demo<'_> {
    fn play(&self) -> Result<Outcome, Fault> {
        let scratch = Scratch::make(self.args.file.is_none().then_some(self.args.size))?;
        let (file, digest) = self.file(&scratch)?;
        let size = file.metadata().map_err(|error| unreadable(&file, &error))?.len();
        self.output.say(&format!(
            "copying {} from one process to another, over a link of {} with a round trip of {} and {} loss",
            ByteSize(size),
            self.args.rate,
            time(self.args.rtt),
            crate::output::human::percent(self.args.loss)
        ));
        self.begin(&file, size);
        let mut server = self.server(&scratch)?;
        let local = server.wait_for("start")?["local"].as_str().unwrap_or_default().to_owned();
        let link = self.link(&local)?;
        let copied = self.copy(&file, &link.address, size);
        let received = copied.and_then(|copied| Ok((copied, server.wait_for("end")?)));
        let (relay, relay_cpu) = link.end()?;
        let ((copy, curve), serve) = received?;
        drop(server);
        let name = file.file_name().unwrap_or_default();
        let arrived = scratch.hash(&scratch.inbox().join(name))?;
        let verified = arrived == digest;
        if !verified {
            return Err(Fault::new(
                Code::Integrity,
                format!("the copy has the digest {arrived}, the file {digest}; this is a defect"),
            ));
        }
        let args = self.args;
        Ok(Outcome {
            size,
            rate: args.rate,
            rtt: args.rtt,
            loss: args.loss,
            copy,
            serve,
            relay,
            relay_cpu,
            curve,
            digest,
        })
    }

    /// The first record.
    fn begin(&self, file: &Path, size: u64) {
        if !self.args.json {
            return;
        }
        has_written("start");
        let record = json!({
            "event": "start",
            "verb": "demo",
            "version": env!("CARGO_PKG_VERSION"),
            "process_id": std::process::id(),
            "settings": {
                "file": file.to_string_lossy(),
                "bytes": size,
                "controller": self.args.controller.to_string(),
                "up": path_record(&self.path(SEEDS.0)),
                "down": path_record(&self.path(SEEDS.1)),
            },
        });
        print(&format!("{record}\n"));
    }

    /// The file to copy, and its digest.
    fn file(&self, scratch: &Scratch) -> Result<(PathBuf, blake3::Hash), Fault> {
        match &self.args.file {
            Some(file) => Ok((file.clone(), scratch.hash(file)?)),
            None => {
                self.output.say(&format!(
                    "making a file of {} of random bytes in {}",
                    self.args.size,
                    scratch.path().display()
                ));
                scratch.make_file(self.args.size, &self.context.interrupt)
            }
        }
    }

    fn server(&self, scratch: &Scratch) -> Result<Child, Fault> {
        let root = scratch.inbox().to_string_lossy().into_owned();
        Child::start(self.context, &["serve", "--plain", "--json", "--listen", "127.0.0.1:0", "--root", &root])
    }

    fn link(&self, server: &str) -> Result<Link, Fault> {
        let to = server.parse().map_err(|_| Fault::new(Code::Failed, "the server did not say where it listens"))?;
        let listen = ([127, 0, 0, 1], 0).into();
        let mut relay = Relay::bind(listen, to, self.path(SEEDS.0), self.path(SEEDS.1))
            .map_err(|error| fault::of_bind(listen, &error))?;
        relay.warnings().for_each(|warning| self.output.warn(&warning));
        let (address, stop) = (relay.local_addr().to_string(), Arc::new(AtomicBool::new(false)));
        let its = Arc::clone(&stop);
        let thread = thread::Builder::new().name("relay".into()).spawn(move || {
            let began = CpuSeconds::of_thread();
            relay.run(&its).map(|report| (report, CpuSeconds::of_thread() - began))
        })?;
        Ok(Link { address, stop, thread })
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

    /// Runs the sending process; its last record, and the goodput of each interval.
    fn copy(&self, file: &Path, relay: &str, size: u64) -> Result<(Value, Vec<u64>), Fault> {
        let file = file.to_string_lossy();
        let (to, controller) = (format!("udt://{relay}/"), self.args.controller.to_string());
        let mut copy = Child::start(
            self.context,
            &["copy", "--plain", "--json", "--interval", INTERVAL, "--controller", &controller, "--", &file, &to],
        )?;
        let bar = progress::bar(Some(size));
        self.output.attach(bar.clone());
        let mut curve = Vec::new();
        loop {
            let record = copy.next()?;
            match record["event"].as_str() {
                Some("interval") => {
                    if self.args.json {
                        print(&format!("{record}\n"));
                    }
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

impl Link {
    fn end(self) -> Result<(RelayReport, CpuSeconds), Fault> {
        self.stop.store(true, Ordering::Release);
        let report = self.thread.join().map_err(|_| Fault::new(Code::Failed, "the relay met a defect"))?;
        Ok(report?)
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Fault {
    Fault::new(Code::FilesFailed, format!("cannot read {}: {error}", path.display()))
}

impl Outcome {
    /// All figures for scripts.
    fn record(&self) -> Value {
        json!({
            "event": "end",
            "bytes": self.size,
            "rate_bps": self.rate.bits_per_second(),
            "rtt_us": crate::output::json::micros(self.rtt),
            "loss": self.loss,
            "capacity_share": self.capacity_share(),
            "ideal_seconds": self.ideal().as_secs_f64(),
            "digest": self.digest.to_string(),
            "verified": true,
            "exit_code": 0,
            "error": null,
            "copy": self.copy,
            "serve": self.serve,
            "relay": super::relay::record(&self.relay, self.relay_cpu),
        })
    }
}
