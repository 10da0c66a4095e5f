//! Cost of encryption: beside plain transfers, and beside QUIC.

use super::wan::CLEAN_PATH;
use super::{Measurement, Row, Run};
use crate::bench::quantity::Quantity;
use crate::bench::requirement::{Bound, Requirement};
use crate::bench::samples::Samples;
use crate::bench::tools::{Amount, Tools};

const LOOPBACK: &str = "encrypted, 1500-byte packets";
const WAN: &str = "encrypted, 10 s, loss 0";
const MEGABYTE: &str = "encrypted, 1 MB, loss 0";
const FLOODED: &str = "encrypted, 1 Gbit/s";
const QUIET: &str = "farhaul, no flood";
const LONGER: &str = "farhaul, twice as long";
/// Forged callers per second: 1 Gbit/s of their packets.
const FLOOD: u64 = 100_000;
const LISTENER: &str = "10000 encrypted, listening";
const CONNECTOR: &str = "10000 encrypted, connecting";
const PLAIN: &str = "farhaul, plain";
/// Idle connections.
const CONNECTIONS: u64 = 10_000;
/// Memory of an idle connection, bytes.
const EACH: f64 = 10.0 * 1024.0;

pub(super) const OVER_LOOPBACK: Row = Row {
    name: "encrypted-loopback",
    what: "goodput and processor time of an encrypted connection, memory to memory over loopback",
    shows: &[Quantity::Goodput, Quantity::CpuPerGb],
    must: &[
        require(LOOPBACK, Quantity::Goodput, Bound::LeastTimes(0.6, PLAIN)),
        require(LOOPBACK, Quantity::Goodput, Bound::LeastTimes(2.0, "quinn")),
        require(LOOPBACK, Quantity::CpuPerGb, Bound::MostTimes(0.6, "quinn")),
    ],
    by: &ON_LOOPBACK,
};

pub(super) const OVER_WAN: Row = Row {
    name: "encrypted-wan",
    what: "goodput, processor time, and completion of 1 MB of an encrypted connection over 1 Gbit/s, 100 ms",
    shows: &[Quantity::Goodput, Quantity::CpuPerGb, Quantity::Completion],
    must: &[
        require(MEGABYTE, Quantity::Completion, Bound::Most(0.55)),
        require(WAN, Quantity::Goodput, Bound::LeastTimes(0.99, PLAIN)),
        require(WAN, Quantity::CpuPerGb, Bound::MostTimes(1.3, PLAIN)),
    ],
    by: &ON_WAN,
};

pub(super) const IDLE: Row = Row {
    name: "encrypted-idle",
    what: "10000 idle encrypted connections on one port, each side separately, and their handshakes",
    shows: &[Quantity::Growth, Quantity::Handshakes],
    must: &[
        require(LISTENER, Quantity::Growth, Bound::Most(CONNECTIONS as f64 * EACH)),
        require(LISTENER, Quantity::Handshakes, Bound::Least(2_000.0)),
    ],
    by: &ALL_IDLE,
};

pub(super) const UNDER_FLOOD: Row = Row {
    name: "encrypted-flood",
    what: "an encrypted transfer at 1 Gbit/s while 100 000 forged callers per second knock at its listener",
    shows: &[Quantity::Goodput, Quantity::ReceiverMemory],
    must: &[
        require(FLOODED, Quantity::Goodput, Bound::LeastTimes(0.8, QUIET)),
        require(FLOODED, Quantity::ReceiverMemory, Bound::MostTimes(2.0, QUIET)),
        // It does not grow with the flood. Five percent are the noise of an allocator.
        Requirement {
            case: FLOODED,
            program: LONGER,
            quantity: Quantity::ReceiverMemory,
            bound: Bound::MostTimes(1.05, "farhaul"),
        },
    ],
    by: &FLOODS,
};

static ON_LOOPBACK: Measurement = Measurement {
    name: "encrypted-loopback",
    how: "farhaul bench with and without encryption (AES-128-GCM), and one QUIC stream of interop/quinn with packets of the same \
        size, 2 s each",
    runs: 5,
    seconds: 10,
    in_settings: false,
    measure: measure_loopback,
};

static ON_WAN: Measurement = Measurement {
    name: "encrypted-wan",
    how: "farhaul bench with and without encryption, 1 MB and then 10 s through farhaul relay at 1 Gbit/s, 100 ms, queue 1 BDP",
    runs: 3,
    seconds: 27,
    in_settings: false,
    measure: measure_wan,
};

static ALL_IDLE: Measurement = Measurement {
    name: "encrypted-idle",
    how: "the idle_connections example of crates/farhaul with encryption: resident memory with the connections minus that without \
        them, and processor time of the side while all were opened",
    runs: 1,
    seconds: 27,
    in_settings: false,
    measure: measure_idle,
};

static FLOODS: Measurement = Measurement {
    name: "encrypted-flood",
    how: "farhaul bench --rate 1gbit for 2 and 4 s over loopback, with and without the initial_flood example of crates/farhaul: valid first \
        packets from 4000 addresses. The listener holds at most 256 such callers",
    runs: 3,
    seconds: 9,
    in_settings: false,
    measure: measure_flood,
};

const fn require(case: &'static str, quantity: Quantity, bound: Bound) -> Requirement {
    Requirement { case, program: "farhaul", quantity, bound }
}

fn measure_loopback(tools: &Tools, run: &Run, samples: &mut Samples) {
    let seconds = run.pick(2, 1);
    for program in run.in_turn(&["farhaul", PLAIN, "quinn"]) {
        let result = match program {
            "farhaul" => tools.farhaul_encrypted("union", Amount::Seconds(seconds), None),
            "quinn" => tools.quinn(seconds),
            _ => tools.farhaul("union", Amount::Seconds(seconds), None),
        };
        samples.add(LOOPBACK, program, result);
    }
}

fn measure_wan(tools: &Tools, run: &Run, samples: &mut Samples) {
    for (amount, case) in [(Amount::Bytes(1_000_000), MEGABYTE), (Amount::Seconds(run.pick(10, 2)), WAN)] {
        for program in run.in_turn(&["farhaul", PLAIN]) {
            let result = match program {
                "farhaul" => tools.farhaul_encrypted("union", amount, Some(&CLEAN_PATH)),
                _ => tools.farhaul("union", amount, Some(&CLEAN_PATH)),
            };
            samples.add(case, program, result);
        }
    }
}

fn measure_flood(tools: &Tools, run: &Run, samples: &mut Samples) {
    let seconds = run.pick(2, 1);
    for program in run.in_turn(&["farhaul", QUIET, LONGER]) {
        let (flood, times) = match program {
            QUIET => (0, 1),
            LONGER => (FLOOD, 2),
            _ => (FLOOD, 1),
        };
        samples.add(FLOODED, program, tools.flooded(seconds * times, flood));
    }
}

fn measure_idle(tools: &Tools, run: &Run, samples: &mut Samples) {
    match tools.idle(run.pick(CONNECTIONS, 500), run.pick(15, 3), Some("secure")) {
        Ok([listener, connector]) => {
            samples.add(LISTENER, "farhaul", Ok(listener));
            samples.add(CONNECTOR, "farhaul", Ok(connector));
        }
        Err(error) => samples.add(LISTENER, "farhaul", Err(error)),
    }
}
