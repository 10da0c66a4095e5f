//! Constants that protocols share, each with its source.

use farhaul_units::Duration;

/// UDT's unit of time for rate control and acknowledgements (2004 paper §3.1: SYN; libudt 4.11: 10 000 µs).
pub const SYN_INTERVAL: Duration = Duration::from_millis(10);

/// Bytes of IPv4 and UDP headers, which UDT counts into its packet size. Source: UDT4 wire, §1.
pub const IP_UDP_HEADER: u32 = 28;
