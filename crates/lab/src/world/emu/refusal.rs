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
            format!("{} flows are too many for real sockets: {MAX_FLOWS} are allowed", setup.flows.len()),
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
            "flow '{}' has packets of {} bytes beside larger ones: the kernel's TCP takes `packet` up to {LARGEST_PACKET} there",
            flow.name, flow.packet
        )
    })
}

fn of_flow(flow: &FlowSpec, choices: &Choices) -> Option<String> {
    if flow.protocol == Protocol::Libudt && choices.libudt.is_none() {
        return Some(format!(
            "flow '{}' is libudt's: name its program by --libudt or FARHAUL_LIBUDT_PEER (interop/build.sh makes it)",
            flow.name
        ));
    }
    if flow.protocol == Protocol::Libudt && flow.bytes.is_some() {
        return Some(format!("flow '{}' of libudt sends until its time is over: leave `bytes` out", flow.name));
    }
    let key = match &flow.protocol {
        _ if flow.machines[0].is_some() => "`sender`, what packets cost its host",
        _ if flow.machines[1].is_some() => "`receiver`, what packets cost its host",
        Protocol::Udt(udt) if udt.disk.is_some() => "`disk`, the disk that it sends from",
        Protocol::Udt(udt) if !udt.delay_warnings => "`delay_warnings = false`",
        _ => return None,
    };
    Some(format!("flow '{}' has {key}, which real sockets do not have: leave it out, or take --world sim", flow.name))
}
