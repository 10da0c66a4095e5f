//! Sizes beyond every limit, which an original announces: refused by name before anything is written.

use std::io::Read;

use super::scripted::{give_rbudp, give_tsunami};
use super::silence::wait_for_the_end;
use crate::process::{Run, Scratch, farhaul};

/// More than any disk has, and still a number of blocks that the format can count.
const VAST: u64 = 4 << 40;

fn copy(place: &str) -> Run {
    let scratch = Scratch::new();
    let run = farhaul(&["copy", "--plain", "--json", place, &scratch.dir("to")]);
    assert!(scratch.names("to").is_empty(), "{place}");
    run
}

#[test]
fn a_size_beyond_every_limit_of_rbudp_is_refused() {
    for (size, code, words) in [
        (i64::MAX, 3, "are the most"),
        (1 << 31, 3, "are the most"),
        (-1, 9, "announced a size of -1 bytes"),
        (i64::MIN, 9, "announced a size of"),
    ] {
        let address = give_rbudp(size, |channel, _datagrams| wait_for_the_end(channel));
        copy(&format!("rbudp://{address}/a")).fails(code, &[words]);
    }
}

#[test]
fn a_size_beyond_the_disk_of_tsunami_is_refused() {
    let address = give_tsunami(VAST, |channel, _, _datagrams| wait_for_the_end(channel));
    let run = copy(&format!("tsunami://{address}/a"));
    run.fails(7, &["no space left", "bytes are needed"]);
    assert_eq!(run.end()["error"]["code"], "DISK_FULL");
}

/// Numbers of packets that the file does not have, beside those that it has.
#[test]
fn numbers_out_of_range_change_no_byte() {
    let scratch = Scratch::new();
    let to = scratch.dir("to");
    let address = give_rbudp(2_000, |mut channel, datagrams| {
        use std::io::Write;
        let packet = |index: u32, byte: u8, length: usize| {
            datagrams.send(&[&index.to_le_bytes()[..], &vec![byte; length]].concat()).unwrap();
        };
        for index in [2, 1_000, u32::MAX, 1 << 31] {
            packet(index, 9, 1_460);
        }
        packet(0, 1, 1_460);
        packet(1, 2, 540);
        channel.write_all(&[0, 0, 0, 0, b'E', b'E', b'E', 0]).unwrap();
        channel.read_exact(&mut [0; 2]).unwrap();
        wait_for_the_end(channel);
    });
    farhaul(&["copy", "--plain", &format!("rbudp://{address}/a"), &to]).succeeds();
    let content = std::fs::read(scratch.at("to/a")).unwrap();
    assert!(content == [&[1; 1_460][..], &[2; 540]].concat());
}
