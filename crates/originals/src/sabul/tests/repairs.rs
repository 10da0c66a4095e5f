//! What a sender repeats, and in which order.

use super::*;

#[test]
fn the_lowest_losses_leave_first_and_one_report_holds_366() {
    let mut sender = after_a_thousand();
    let losses: Vec<u32> = (0..732).rev().step_by(2).collect();
    assert_eq!(losses.len(), 366);
    sender.write(at(15), &[8; 1_468]);
    sender.handle_channel(at(15), &words(&[&[2, 366], &losses[..]].concat()));
    let sent = numbers(&datagrams(&mut sender, 16, 60));
    let mut expected: Vec<u32> = losses.iter().rev().flat_map(|loss| [*loss, 999]).collect();
    expected.push(1_000);
    assert_eq!(sent, expected);
}

/// The original receiver forgets how far its data reaches, each time that its application asks for more while packets are
/// missing. The next arrival beyond reminds it. Without one it leaves out what it holds.
#[test]
fn the_newest_full_packet_follows_each_repair_at_once() {
    let mut sender = open_sender(&fast());
    sender.write(at(0), &vec![7; 100 * 1_468 + 5]);
    sender.finish(at(0));
    assert_eq!(datagrams(&mut sender, 0, 15).len(), 101);
    sender.handle_channel(at(15), &words(&[2, 3, 4, 9, 50]));
    // The law pauses for 10 ms.
    assert_eq!(numbers(&datagrams(&mut sender, 15, 24)), [] as [u32; 0]);
    assert_eq!(numbers(&datagrams(&mut sender, 25, 90)), [4, 99, 9, 99, 50, 99], "packet 100 has 5 bytes");
    sender.handle_channel(at(90), &words(&[2, 1, 99]));
    assert_eq!(numbers(&datagrams(&mut sender, 90, 180)), [99], "nothing full is beyond");
    sender.handle_channel(at(180), &words(&[2, 1, 100]));
    assert_eq!(numbers(&datagrams(&mut sender, 180, 260)), [100]);
}

#[test]
fn a_repair_and_its_follower_leave_together_however_slow_the_rate_is() {
    let slow = Options { first_rate: Some(Rate::from_megabits_per_second(12)), ..Options::original() };
    let mut sender = open_sender(&slow);
    sender.write(at(0), &vec![7; 10 * 1_468]);
    assert_eq!(datagrams(&mut sender, 0, 15).len(), 10);
    sender.handle_channel(at(15), &words(&[2, 2, 4, 5]));
    let mut together = Vec::new();
    for millis in 16..60 {
        let sent = numbers(&datagrams(&mut sender, millis, millis));
        together.extend((!sent.is_empty()).then_some(sent));
    }
    assert_eq!(together, [[4, 9], [5, 9]]);
}

#[test]
fn a_second_of_silence_repeats_everything_unacknowledged() {
    let mut sender = after_a_thousand();
    sender.handle_channel(at(15), &words(&[1, 900]));
    let sent = numbers(&datagrams(&mut sender, 15, 1_500));
    let repairs: Vec<u32> = (900..999).flat_map(|number| [number, 999]).chain([999]).collect();
    assert_eq!(sent, repairs);
    assert_eq!(sender.stats(at(1_500)).totals.timeouts, 1);
}
