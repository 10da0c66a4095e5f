//! `pipe` with an original program of SABUL: `--listen` sends stdin, `--connect` receives to stdout.

use std::net::SocketAddr;
use std::time::Duration;

use farhaul_originals::sabul::StreamEnd;
use farhaul_originals::{Failure, SabulReceiver, SabulSender, SessionHandle, StreamTerms};
use farhaul_transfer::internal::report::{Direction, Report, goodput};
use farhaul_transfer::internal::session::measure::Meter;
use farhaul_units::ByteSize;

use super::fault::of;
use super::{complete, end_record, show_state, start, stoppable};
use crate::cmd::pipe::args::PipeArgs;
use crate::cmd::{Context, report_end};
use crate::exit::{Code, Fault};
use crate::output::human::{is_terminal, rate, time};
use crate::output::json::Record;
use crate::output::standard_stream::unwritable;
use crate::output::{JsonTo, Output};

const PROTOCOL: &str = "sabul";

/// Sends or receives one stream.
pub(crate) fn run(args: &PipeArgs, context: &Context) -> Result<(), Fault> {
    args.check()?;
    args.transport.require_plain("the stream of an original program")?;
    let output = Output::new(if args.transport.json { JsonTo::Stderr } else { JsonTo::Nowhere });
    let handle = stoppable(context);
    let transport = &args.transport;
    let terms = StreamTerms {
        connect_timeout: transport.connect_timeout,
        peer_timeout: transport.timeout,
        rate: transport.rate(),
        buffer: transport.buffer.map(|ByteSize(bytes)| bytes),
    };
    let pipe = Pipe { args, context, output, handle, terms };
    let mut meter = Meter::start(context.clock);
    show_state(context, &pipe.output, &pipe.handle.progress, meter);
    let direction = if args.listen.is_some() { Direction::Sent } else { Direction::Received };
    let mut end = end_record(PROTOCOL, direction);
    let result = match &args.listen {
        Some(_) => pipe.send(&mut end, &mut meter),
        None => pipe.receive(&mut end),
    };
    complete(&mut end, &pipe.handle.progress, meter);
    end.goodput_bps = goodput(end.bytes, meter.elapsed());
    // A sender tells it to scripts too: original receivers write wrong bytes, and end with success.
    if result.is_ok() && (direction == Direction::Sent || is_terminal()) {
        pipe.output.print_line(&pipe.output.style().dim(&summary(&end, direction)));
    }
    report_end(&pipe.output, end, result)
}

fn summary(end: &Report, direction: Direction) -> String {
    let advice = match direction {
        Direction::Sent => ", and original receivers may write wrong bytes: compare a digest",
        _ => "",
    };
    format!(
        "{} in {}, {}; not verified: this protocol carries no digest{advice}; {}",
        ByteSize(end.bytes),
        time(Duration::from_secs_f64(end.seconds)),
        rate(end.goodput_bps),
        end.protection()
    )
}

struct Pipe<'a> {
    args: &'a PipeArgs,
    context: &'a Context,
    output: Output,
    handle: SessionHandle,
    terms: StreamTerms,
}

impl Pipe<'_> {
    fn send(&self, end: &mut Report, meter: &mut Meter) -> Result<(), Fault> {
        let Some(listen) = &self.args.listen else { return Err(Fault::usage("give --listen or --connect")) };
        let address = listen.listening()?;
        let sender = SabulSender::bind(address).map_err(|failure| of(self.context, &failure, &address))?;
        self.begin(Some(sender.local_addr()), None);
        let mut peer = None;
        let sent = sender.send(std::io::stdin(), self.terms, &self.handle, |met| {
            *meter = Meter::start(self.context.clock);
            peer = Some(met);
        });
        end.address = peer.map(|peer| peer.to_string());
        sent.map_err(|failure| match failure {
            Failure::Stream(error) => Fault::new(Code::LocalIo, format!("cannot read stdin: {error}")),
            failure => of(self.context, &failure, &peer.unwrap_or(address)),
        })
    }

    fn receive(&self, end: &mut Report) -> Result<(), Fault> {
        let to = self.args.connect.as_ref().ok_or_else(|| Fault::usage("give --listen or --connect"))?;
        let mut failed = Failure::Stopped;
        for peer in to.resolve()? {
            self.begin(None, Some(peer));
            let receiver = match SabulReceiver::connect(peer, self.terms.connect_timeout, &self.handle) {
                Ok(receiver) => receiver,
                Err(failure) => {
                    failed = failure;
                    continue;
                }
            };
            end.address = Some(peer.to_string());
            let ended = receiver.receive(std::io::stdout(), self.terms).map_err(|failure| match failure {
                Failure::Stream(error) => unwritable(&error),
                failure => of(self.context, &failure, &peer),
            })?;
            return self.judge(ended, peer);
        }
        Err(of(self.context, &failed, to))
    }

    /// The judgement about the end of a stream whose size nobody announces.
    fn judge(&self, end: StreamEnd, peer: SocketAddr) -> Result<(), Fault> {
        match end {
            StreamEnd::Closed => Ok(()),
            StreamEnd::ClosedEarly => Err(Fault::new(
                Code::PeerLost,
                format!("{peer} closed before it could know that everything had arrived; it may have been stopped"),
            )),
            StreamEnd::Broken => {
                self.output.warn(&format!(
                    "the connection to {peer} broke after the last byte that arrived; an original sender may end so, and \
                     so does a network that fails: compare the sizes"
                ));
                Ok(())
            }
        }
    }

    fn begin(&self, local: Option<SocketAddr>, peer: Option<SocketAddr>) {
        let mut start = start(&self.args.transport, "pipe", PROTOCOL);
        start.local = local.map(|local| local.to_string());
        start.address = peer.map(|peer| peer.to_string());
        start.settings.insert("original".into(), true.into());
        self.output.record(&Record::Start(Box::new(start)));
    }
}
