//! Idle connections, by the idle_connections example of crates/farhaul.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::super::process::Process;
use super::super::quantity::Quantity;
use super::super::samples::Measured;
use super::libudt::address;
use super::{OPENING, Tools, needed};

/// Time limit for opening and closing all connections.
const PATIENCE: Duration = Duration::from_secs(60);

impl Tools {
    /// Opens `connections` connections on one port for `seconds` seconds. Returns the cost in the listening and in the
    /// connecting process. `secure` as the `kind` encrypts them.
    pub(in super::super) fn idle(&self, connections: u64, seconds: u64, kind: Option<&str>) -> Result<[Measured; 2]> {
        let (count, time) = (connections.to_string(), seconds.to_string());
        let side = |role: &str, at: &str| {
            Process::start(self.example("idle_connections").args([role, at, &count, &time]).args(kind))
        };
        let mut listener = side("listen", "127.0.0.1:0")?;
        let address = address(&listener.wait_for_line("listening ", OPENING)?)?;
        let connector = side("connect", &address.to_string())?;
        let patience = PATIENCE + Duration::from_secs(seconds);
        let connecting = connector.finish(patience)?.record("cpu_seconds")?;
        let listening = listener.finish(patience)?.record("cpu_seconds")?;
        Ok([figures("listening", &listening, connections)?, figures("connecting", &connecting, connections)?])
    }
}

fn figures(side: &str, record: &Value, connections: u64) -> Result<Measured> {
    let alive = needed(record, &["connections"])?;
    ensure!(alive == connections as f64, "{alive} of {connections} connections were alive at the end");
    let (before, after) = (needed(record, &["memory_before_bytes"])?, needed(record, &["memory_after_bytes"])?);
    let share = needed(record, &["cpu_seconds"])? / needed(record, &["seconds"])?;
    let notes = vec![format!("{side}: resident memory in all {}", Quantity::Growth.show(after))];
    let handshakes = alive / needed(record, &["opening_cpu_seconds"])?;
    let figures =
        vec![(Quantity::Growth, after - before), (Quantity::CpuShare, share), (Quantity::Handshakes, handshakes)];
    Ok(Measured { figures, notes })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn growth_and_share_of_a_core_follow_from_the_record() {
        let record = json!({ "connections": 10, "seconds": 20, "cpu_seconds": 0.1,
            "opening_cpu_seconds": 0.01, "memory_before_bytes": 1_000, "memory_after_bytes": 5_000 });
        let measured = figures("listening", &record, 10).unwrap();
        let expected = [(Quantity::Growth, 4_000.0), (Quantity::CpuShare, 0.005), (Quantity::Handshakes, 1_000.0)];
        assert_eq!(measured.figures, expected);
        assert!(figures("listening", &record, 11).is_err(), "a connection that was lost costs nothing");
    }
}
