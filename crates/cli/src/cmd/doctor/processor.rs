//! Processors: how many, how they set their frequency, how fast one of them encrypts.

use std::fs;
use std::thread;
use std::time::Duration;

use farhaul::Rate;
use farhaul::security::{Cipher, Sealer};
use farhaul_udp::thread_cpu_time;

use super::finding::Finding;
use crate::output::human::plural;

const FREQUENCY: &str = "/sys/devices/system/cpu/cpu0/cpufreq";
/// Payload of a sealed packet: 1500 bytes less the headers of IP, UDP, UDT4 and packet protection.
const BODY: usize = 1_428;
/// Clear bytes in front of it.
const HEADER: [u8; 16] = [7; 16];
/// Processor time for which each cipher runs.
const RUN: Duration = Duration::from_millis(40);
/// Packets between two looks at the clock.
const PACKETS: u32 = 64;
/// A core that encrypts less than this is in the way of fast paths.
const ENOUGH: u64 = 1_000_000_000;
/// The automatic choice may be slower by this factor before it is worth a word.
const MUCH_FASTER: f64 = 1.25;
/// Drivers whose governor `powersave` still raises the frequency with the load.
const SELF_GOVERNED: [&str; 4] = ["intel_pstate", "amd-pstate", "amd-pstate-epp", "amd_pstate_epp"];

/// A cipher: the name of its option, and that of its field in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named {
    cipher: Cipher,
    option: &'static str,
    words: &'static str,
    field: &'static str,
}

const CIPHERS: [Named; 3] = [
    Named { cipher: Cipher::Aes128Gcm, option: "aes128", words: "AES-128-GCM", field: "aes128_bps" },
    Named { cipher: Cipher::Aes256Gcm, option: "aes256", words: "AES-256-GCM", field: "aes256_bps" },
    Named { cipher: Cipher::ChaCha20Poly1305, option: "chacha20", words: "ChaCha20-Poly1305", field: "chacha20_bps" },
];

/// `chosen`: the option of this user's cipher; `None` for the automatic choice.
pub(super) fn examine(chosen: Option<&str>) -> Vec<Finding> {
    let count = thread::available_parallelism().map_or(1, usize::from);
    let read = |name: &str| fs::read_to_string(format!("{FREQUENCY}/{name}")).ok();
    let governor = read("scaling_governor");
    let driver = read("scaling_driver").unwrap_or_default();
    let speeds: Vec<(Named, u64)> =
        CIPHERS.into_iter().filter_map(|named| Some((named, speed(named.cipher)?))).collect();
    let mut found = vec![judge_processors(count)];
    found.extend(governor.map(|governor| judge_governor(governor.trim(), driver.trim())));
    found.extend(judge_ciphers(&speeds, Sealer::has_aes_instructions(), chosen));
    found
}

/// A transfer has a thread for its port, one for the program's data, and one for the disk.
pub(super) fn judge_processors(count: usize) -> Finding {
    let words = plural(count as u64, "processor");
    let message = match count {
        1 => format!("{words}: network, encryption and disk take turns"),
        _ => format!("{words} for this program"),
    };
    Finding::ok("processors", message).with("processors", count)
}

/// A frequency that stays low makes every packet cost more.
pub(super) fn judge_governor(governor: &str, driver: &str) -> Finding {
    let stays_low = governor == "powersave" && !SELF_GOVERNED.contains(&driver);
    if stays_low {
        return Finding::advice("governor", format!("'{governor}' keeps the processors at their lowest frequency"))
            .fix("echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor");
    }
    Finding::ok("governor", format!("'{governor}' raises the frequency of processors under load"))
}

/// Bits per second that one core encrypts. `None` if there is no such cipher.
fn speed(cipher: Cipher) -> Option<u64> {
    let sealer = Sealer::new(cipher)?;
    let mut body = [0x5A; BODY];
    let begun = thread_cpu_time();
    let (mut packets, mut spent) = (0_u64, Duration::ZERO);
    while spent < RUN {
        for _ in 0..PACKETS {
            if !sealer.seal(packets, &HEADER, &mut body) {
                return None;
            }
            packets += 1;
        }
        spent = thread_cpu_time() - begun;
    }
    Rate::from_bytes_in(packets * BODY as u64, spent).map(Rate::bits_per_second)
}

/// `speeds`: bits per second of each cipher. `chosen`: as in [`examine`]. `None` without any.
pub(super) fn judge_ciphers(speeds: &[(Named, u64)], has_aes: bool, chosen: Option<&str>) -> Option<Finding> {
    let &(fastest, bits) = speeds.iter().max_by_key(|(_, bits)| *bits)?;
    let in_use = chosen.unwrap_or(if has_aes { "aes128" } else { "chacha20" });
    let of_chosen = speeds.iter().find(|(named, _)| named.option == in_use).map_or(bits, |(_, bits)| *bits);
    let rate = |bits| Rate::from_bits_per_second(bits).to_string();
    let all: Vec<String> = speeds.iter().map(|(named, bits)| format!("{} {}", named.words, rate(*bits))).collect();
    let instructions = if has_aes { "with" } else { "without" };
    let message = format!("one core encrypts {} ({instructions} AES instructions)", all.join(", "));
    let finding = if bits as f64 > of_chosen as f64 * MUCH_FASTER {
        Finding::advice("cipher_speed", format!("{message}; connections prefer {in_use}"))
            .fix(format!("export FARHAUL_CIPHER={}", fastest.option))
    } else if bits < ENOUGH {
        Finding::advice("cipher_speed", format!("{message}; encryption limits transfers to {}", rate(bits)))
    } else {
        Finding::ok("cipher_speed", message)
    };
    let finding = finding.with("fastest_bps", bits).with("packet_bytes", BODY);
    Some(speeds.iter().fold(finding, |finding, (named, bits)| finding.with(named.field, *bits)))
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingState;
    use super::*;

    fn judged(speeds: [u64; 3], has_aes: bool) -> Finding {
        let speeds: Vec<_> = CIPHERS.into_iter().zip(speeds.map(|megabits| megabits * 1_000_000)).collect();
        judge_ciphers(&speeds, has_aes, None).unwrap()
    }

    #[test]
    fn the_default_cipher_is_right_on_both_kinds_of_processors() {
        let with = judged([40_000, 34_000, 15_000], true);
        assert_eq!((with.state, with.fix.clone()), (FindingState::Ok, None));
        assert!(
            with.message.contains("AES-128-GCM 40.0 Gbit/s") && with.message.contains("(with AES"),
            "{}",
            with.message
        );
        assert_eq!(with.record()["fastest_bps"], 40_000_000_000_u64);
        assert_eq!(judged([900, 700, 3_000], false).state, FindingState::Ok);
    }

    #[test]
    fn a_faster_cipher_than_the_default_is_named_and_a_slow_core_too() {
        let other = judged([2_000, 1_500, 6_000], true);
        assert_eq!((other.state, other.fix.as_deref()), (FindingState::Advice, Some("export FARHAUL_CIPHER=chacha20")));
        let speeds: Vec<_> = CIPHERS.into_iter().zip([2_000_000_000, 1_500_000_000, 6_000_000_000]).collect();
        let followed = judge_ciphers(&speeds, true, Some("chacha20")).unwrap();
        assert_eq!(followed.state, FindingState::Ok, "once the user has followed the advice");
        let slow = judged([200, 150, 600], false);
        assert!(slow.state == FindingState::Advice && slow.message.contains("limits transfers to 600 Mbit/s"));
        assert_eq!(judge_ciphers(&[], true, None), None);
    }

    #[test]
    fn every_cipher_can_be_measured() {
        assert!(CIPHERS.iter().all(|named| speed(named.cipher).is_some_and(|bits| bits > 0)));
    }

    #[test]
    fn powersave_is_slow_only_under_drivers_that_obey_it() {
        let states =
            [("powersave", "acpi-cpufreq"), ("powersave", "intel_pstate"), ("schedutil", "x"), ("performance", "")]
                .map(|(governor, driver)| judge_governor(governor, driver).state);
        assert_eq!(states, [FindingState::Advice, FindingState::Ok, FindingState::Ok, FindingState::Ok]);
        assert!(judge_processors(1).message.contains("take turns") && judge_processors(8).state == FindingState::Ok);
    }
}
