//! Description of the machine, without which figures are worthless.

use std::fs;
use std::thread::available_parallelism;

use serde_json::Value;

use crate::workspace::Workspace;

/// Packet size for every program, in bytes with headers: that of Ethernet.
pub(super) const PACKET_SIZE: u32 = 1_500;
/// Load by other programs, in cores, above which figures suffer.
const QUIET: f64 = 0.3;

/// Names and values, in the order of printing.
pub(super) fn describe(workspace: &Workspace) -> Vec<(&'static str, String)> {
    let averages = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let file = |path: &str| fs::read_to_string(path).map_or_else(|_| "unknown".into(), |text| text.trim().to_owned());
    let cpu_info = file("/proc/cpuinfo");
    let processor = cpu_info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let memory = file("/proc/meminfo").lines().next().and_then(mebibytes);
    let version = workspace.command("git").args(["describe", "--always", "--dirty"]).output().ok();
    let version = version.filter(|output| output.status.success());
    let limit = |name: &str| file(&format!("/proc/sys/net/core/{name}"));
    let pair = |name: &str| {
        format!("most {}, unless asked {}", limit(&format!("{name}_max")), limit(&format!("{name}_default")))
    };
    vec![
        ("processor", processor.map_or("unknown", |(_, name)| name).to_owned()),
        ("cores", available_parallelism().map_or_else(|_| "unknown".into(), |cores| cores.to_string())),
        ("memory", memory.map_or_else(|| "unknown".into(), |mebibytes| format!("{mebibytes} MiB"))),
        ("system", format!("{} {}", std::env::consts::OS, file("/proc/sys/kernel/osrelease"))),
        ("mtu", format!("loopback {}, packets {PACKET_SIZE}", file("/sys/class/net/lo/mtu"))),
        ("rmem", pair("rmem")),
        ("wmem", pair("wmem")),
        ("cipher", cipher(workspace)),
        ("load", load(&averages)),
        (
            "commit",
            version.map_or("unknown".into(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        ),
    ]
}

/// What one core encrypts, by the word of `farhaul doctor`. Figures of encrypted transfers depend on it.
fn cipher(workspace: &Workspace) -> String {
    let doctor = workspace
        .command(&workspace.target.join("release/farhaul").to_string_lossy())
        .args(["doctor", "--json"])
        .output();
    let output = doctor.map(|output| output.stdout).unwrap_or_default();
    let rate = String::from_utf8_lossy(&output).lines().find_map(aes_128);
    rate.map_or_else(|| "unknown".into(), |rate| format!("AES-128-GCM {:.1} Gbit/s per core", rate / 1e9))
}

/// `{"event":"finding","id":"cipher_speed","aes128_bps":18295522580,…}`
fn aes_128(line: &str) -> Option<f64> {
    serde_json::from_str::<Value>(line).ok()?["aes128_bps"].as_f64()
}

/// `MemTotal:  24576000 kB`
fn mebibytes(line: &str) -> Option<u64> {
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? >> 10)
}

/// The mean load of the last minute, with a warning if another program is active. Includes the build of the programs.
fn load(averages: &str) -> String {
    let last_minute = averages.split_whitespace().next().unwrap_or("unknown");
    let busy = last_minute.parse().is_ok_and(|load: f64| load > QUIET);
    format!("{last_minute}{}", if busy { ": not quiet, unless it was the build of the programs" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_named() {
        assert_eq!(load("0.05 0.10 0.01 1/90 33"), "0.05");
        assert!(load("2.31 1.10 0.01 1/90 33").contains("not quiet"));
    }

    #[test]
    fn the_speed_of_the_cipher_is_read_from_a_finding() {
        assert_eq!(aes_128(r#"{"event":"finding","aes128_bps":18295522580}"#), Some(18_295_522_580.0));
        assert_eq!(aes_128(r#"{"event":"end"}"#), None);
    }

    #[test]
    fn memory_is_read_from_the_kernels_table() {
        assert_eq!(mebibytes("MemTotal:       25165824 kB"), Some(24_576));
    }
}
