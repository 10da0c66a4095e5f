//! Shared by `stream` and `profile`: the port, the records, a run that signals end.

use std::net::SocketAddr;
use std::time::Duration;

use farhaul::probe::{Blaster, BlasterConfig, BlasterFigures, Delays, ProbeSocket, Probing as _};
use serde_json::{Map, Value, json};

use super::{Context, connect};
use crate::exit::{Code, Fault};
use crate::fault;
use crate::options::Probing;
use crate::output::json::{ErrorRecord, micros};
use crate::output::{Output, has_written};

/// A signal ends a run after this time at the latest.
const SLICE: Duration = Duration::from_millis(50);

/// A port for measured streams to a far end that answers.
pub(super) struct Port<'a> {
    pub(super) context: &'a Context,
    pub(super) output: Output,
    pub(super) socket: ProbeSocket,
    pub(super) peer: SocketAddr,
    /// UDP payload of each packet.
    pub(super) datagram: u16,
}

impl<'a> Port<'a> {
    /// Opens a port towards the first address that answers, and writes the `start` record.
    pub(super) fn open(
        options: &Probing,
        context: &'a Context,
        verb: &str,
        settings: Map<String, Value>,
    ) -> Result<Self, Fault> {
        options.require_plain()?;
        let output = Output::from_flag(options.json);
        let peers = options.connect.resolve()?;
        has_written("start");
        let record = json!({
            "event": "start",
            "verb": verb,
            "version": env!("CARGO_PKG_VERSION"),
            "process_id": std::process::id(),
            "security": "none",
            "address": options.connect.to_string(),
            "mtu_bytes": options.mtu,
            "settings": settings,
        });
        output.write(&record.to_string());
        let mut failed = None;
        for peer in peers {
            match Self::at(options, context, output.clone(), peer) {
                Err(fault) if !context.interrupt.is_stopping() => failed = Some(fault),
                result => return result,
            }
        }
        Err(failed.unwrap_or_else(|| Fault::usage("the name has no address")))
    }

    fn at(options: &Probing, context: &'a Context, output: Output, peer: SocketAddr) -> Result<Self, Fault> {
        connect::check_route(peer)?;
        let socket = ProbeSocket::towards(peer).map_err(|error| fault::of_connection(&error, &peer))?;
        let mut port = Self { context, output, socket, peer, datagram: options.datagram(peer) };
        let question = BlasterConfig {
            datagram: port.datagram,
            window: 1,
            sleep: Duration::ZERO,
            spaced: false,
            messages: false,
            time: Duration::ZERO,
        };
        match port.blast(question)?.result() {
            Some(Some(_)) => Ok(port),
            _ => Err(nobody(peer)),
        }
    }

    /// Runs one point of a profile, to its end.
    pub(super) fn blast(&mut self, config: BlasterConfig) -> Result<Blaster, Fault> {
        let of = |error: farhaul::Error, peer| fault::of_connection(&error, &peer);
        let mut blaster = self.socket.blaster(config).map_err(|error| of(error, self.peer))?;
        while blaster.poll_timeout().is_some() {
            self.socket.run(&mut blaster, SLICE).map_err(|error| of(error, self.peer))?;
            if let Some(fault) = self.context.interrupt.fault() {
                return Err(fault);
            }
        }
        Ok(blaster)
    }

    /// The figures of one point.
    pub(super) fn measure(&mut self, config: BlasterConfig) -> Result<BlasterFigures, Fault> {
        let peer = self.peer;
        let lost = || Fault::new(Code::PeerLost, format!("{peer} answers no more: it or the network is down"));
        self.blast(config)?.result().flatten().ok_or_else(lost)
    }

    /// Writes the `end` record, and gives the result back.
    pub(super) fn conclude(&self, mut end: Value, result: Result<(), Fault>) -> Result<(), Fault> {
        self.output.detach();
        has_written("end");
        end["event"] = "end".into();
        end["address"] = self.peer.to_string().into();
        end["datagram_bytes"] = self.datagram.into();
        end["security"] = "none".into();
        end["exit_code"] = result.as_ref().err().map_or(0, |fault| fault.code.exit()).into();
        end["error"] = json!(result.as_ref().err().map(ErrorRecord::from));
        self.output.write(&end.to_string());
        result
    }
}

/// Nobody answers measured streams at `peer`.
pub(super) fn nobody(peer: SocketAddr) -> Fault {
    Fault::new(
        Code::ConnectTimeout,
        format!(
            "no answer from {peer} within 3 s: nothing there answers measured streams, or UDP is blocked on the way; \
             start `farhaul bench --plain --listen :{}` there, and check that firewalls let this UDP port through",
            peer.port()
        ),
    )
}

/// The figures of delays in records, microseconds.
pub(super) fn delay_record(delays: &Delays) -> Value {
    let quantile = |part| delays.quantile(part).map(micros);
    json!({
        "count": delays.count(),
        "mean": micros(delays.mean()),
        "deviation": micros(delays.deviation()),
        "p50": quantile(0.5),
        "p99": quantile(0.99),
    })
}
