//! Setups that real sockets cannot run.

use super::tcp::LARGEST_PACKET;
use super::{Choices, descriptors};
use crate::scenario::flow::{FlowSpec, Protocol};
use crate::scenario::setup::Setup;

/// The most flows of a run. Each has two threads.
const MAX_FLOWS: usize = 1_000;

/// The reason why a setup cannot be run here, and the line of the scenario.
pub(crate) fn refusal(setup: &Setup, choices: &Choices) -> Option<(usize, String)> {
    if setup.flows.len() > MAX_FLOWS {
        let line = setup.flows[MAX_FLOWS].line;
        return Some((
            line,
            format!("{} flows are too many for real sockets: at most {MAX_FLOWS} are allowed", setup.flows.len()),
        ));
    }
    let largest = setup.largest_packet().unwrap_or_default();
    let of = |flow| of_flow(flow, choices).or_else(|| of_packets(flow, largest));
    let mut refused = setup.flows.iter().filter_map(|flow| Some((flow.line, of(flow)?)));
    refused.next().or_else(|| Some((setup.flows.last()?.line, descriptors::refusal(setup)?)))
}

/// Refuses packets that the kernel's TCP cannot be limited to. It knows the largest packet of its host, and accepts
/// smaller limits only up to a size.
fn of_packets(flow: &FlowSpec, largest: u32) -> Option<String> {
    let is_free = matches!(flow.protocol, Protocol::Tcp(_)) && (LARGEST_PACKET + 1..largest).contains(&flow.packet);
    is_free.then(|| {
        format!(
            "flow '{}' has packets of {} bytes beside larger ones: there, the kernel's TCP accepts `packet` only up to {LARGEST_PACKET}",
            flow.name, flow.packet
        )
    })
}

fn of_flow(flow: &FlowSpec, choices: &Choices) -> Option<String> {
    if flow.protocol == Protocol::Libudt && choices.libudt.is_none() {
        return Some(format!(
            "flow '{}' needs the program of libudt: name it by --libudt or FARHAUL_LIBUDT_PEER (interop/build.sh builds it)",
            flow.name
        ));
    }
    if flow.protocol == Protocol::Libudt && flow.bytes.is_some() {
        return Some(format!("flow '{}' of libudt cannot have `bytes`: end it by `stop`", flow.name));
    }
    let key = match &flow.protocol {
        Protocol::Bulk(bulk) if bulk.answers_as_libudt => "`answers`, a model of libudt's receiver",
        _ if flow.hosts[0].is_some() => "`sender`, a model of its host",
        _ if flow.hosts[1].is_some() => "`receiver`, a model of its host",
        _ => return None,
    };
    Some(format!("flow '{}' has {key}, which real sockets do not have: leave it out, or use --world sim", flow.name))
}
