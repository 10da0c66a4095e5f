//! What figures were made on: without it they are worth nothing.

use std::fs;
use std::thread::available_parallelism;

use crate::workspace::Workspace;

/// Bytes of the packets that every program is told to use: Ethernet's, headers included.
pub(super) const PACKET_SIZE: u32 = 1_500;

/// Name and value, in the order of printing.
pub(super) fn describe(workspace: &Workspace) -> Vec<(&'static str, String)> {
    let file = |path: &str| fs::read_to_string(path).map_or_else(|_| "unknown".into(), |text| text.trim().to_owned());
    let cpu_info = file("/proc/cpuinfo");
    let processor = cpu_info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let version = workspace.command("git").args(["describe", "--always", "--dirty"]).output().ok();
    let version = version.filter(|output| output.status.success());
    vec![
        ("processor", processor.map_or("unknown", |(_, name)| name).to_owned()),
        ("cores", available_parallelism().map_or_else(|_| "unknown".into(), |cores| cores.to_string())),
        ("system", format!("{} {}", std::env::consts::OS, file("/proc/sys/kernel/osrelease"))),
        ("mtu", format!("loopback {}, packets {PACKET_SIZE}", file("/sys/class/net/lo/mtu"))),
        ("rmem_max", file("/proc/sys/net/core/rmem_max")),
        ("wmem_max", file("/proc/sys/net/core/wmem_max")),
        (
            "commit",
            version.map_or("unknown".into(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        ),
    ]
}
