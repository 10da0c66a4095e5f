//! Both sessions: against each other over a lossy path, and against scripts of the bytes that the originals send.

mod path;
mod scripted_client;
mod scripted_server;

use farhaul_units::{Duration, Instant, Rate};
use farhaul_wire::tsunami::{CHALLENGE_LEN, Challenge, Proof};

use super::*;
use crate::session::OriginalSession as _;
use crate::session::testing::said;
use farhaul_proto::channel::ChannelEnd;
use path::{Files, Link, Pair};

/// 0, 1, … 63.
fn challenge() -> Challenge {
    let mut challenge = [0; CHALLENGE_LEN];
    challenge.iter_mut().zip(0..).for_each(|(byte, value)| *byte = value);
    challenge
}

fn start() -> Instant {
    Instant::from_nanos(1_000_000_000)
}

fn client_options(megabits: u64) -> ClientOptions {
    ClientOptions { rate: Rate::from_megabits_per_second(megabits), ..ClientOptions::default() }
}

#[test]
fn files_of_all_sizes_arrive_over_paths_of_all_kinds() {
    for (seed, (delay, loss, block_size, megabits)) in [
        (1, 0.0, 1_024, 650),
        (1, 0.01, 1_024, 100),
        (10, 0.001, 1_460, 650),
        (50, 0.05, 8_192, 650),
        (100, 0.3, 32_768, 1_000),
        (5, 0.01, 65_501, 4_000),
    ]
    .into_iter()
    .enumerate()
    {
        for size in [0, 1, 1_023, 1_024, 1_025, 65_501, 65_502, 3_000_001] {
            let files = Files::new(&[("a", size)]);
            let link = Link { delay: Duration::from_millis(delay), loss, ..Link::default() };
            let options = ClientOptions { block_size, ..client_options(megabits) };
            let mut pair = Pair::new(options, ServerOptions::default(), files, link, seed as u64);
            assert_eq!(pair.get("a"), ClientEvent::Done { missing: 0 }, "{size} bytes, {loss}");
            assert!(pair.received == pair.files.content("a"), "{size} bytes, {loss}");
        }
    }
}

#[test]
fn several_files_and_both_lists_follow_one_another() {
    let files = Files::new(&[("a", 100_000), ("folder/b", 0), ("c", 5)]);
    let mut pair = Pair::new(client_options(100), ServerOptions::default(), files, Link::default(), 1);
    pair.ask(Client::list_all);
    let names = ["a", "c", "folder/b"].map(|name| name.as_bytes().to_vec()).to_vec();
    assert_eq!(pair.result(), ClientEvent::Names(names));
    for name in ["a", "nothing", "c", "folder/b", "a"] {
        let expected = if name == "nothing" { ClientEvent::Refused } else { ClientEvent::Done { missing: 0 } };
        assert_eq!(pair.get(name), expected, "{name}");
        assert!(pair.received == pair.files.content(name), "{name}");
    }
    pair.ask(Client::list);
    let listed = |name: &str, size| Listed { name: name.as_bytes().to_vec(), size };
    let files = vec![listed("a", 100_000), listed("c", 5), listed("folder/b", 0)];
    assert_eq!(pair.result(), ClientEvent::Files(files));
    pair.deliver_all();
    let now = pair.now;
    pair.client.channel_ended(now, ChannelEnd::Finished);
    pair.server.channel_ended(now, ChannelEnd::Finished);
    assert_eq!((pair.result(), pair.server.poll_event()), (ClientEvent::Ended, Some(ServerEvent::Ended)));
}

#[test]
fn a_path_far_below_the_rate_makes_the_client_restart_and_the_file_arrives() {
    let files = Files::new(&[("a", 20_000_000)]);
    let link = Link { rate: Rate::from_megabits_per_second(100), queue: 20, ..Link::default() };
    let mut pair = Pair::new(client_options(1_000), ServerOptions::default(), files, link, 2);
    assert_eq!(pair.get("a"), ClientEvent::Done { missing: 0 });
    assert!(pair.received == pair.files.content("a"));
    let counts = pair.stopped.expect("the server was told");
    assert!(counts.restarts > 0 && counts.refused == 0, "{counts:?}");
}

#[test]
fn a_client_that_accepts_losses_asks_for_nothing() {
    let link = || Link { loss: 0.05, ..Link::default() };
    let files = || Files::new(&[("a", 2_000_000)]);
    let options = ClientOptions { losses: Losses::Accept, ..client_options(100) };
    let mut pair = Pair::new(options, ServerOptions::default(), files(), link(), 3);
    let ClientEvent::Done { missing } = pair.get("a") else { panic!("not done") };
    let content = pair.files.content("a");
    let blocks = content.len().div_ceil(1_024);
    assert!((blocks / 30..blocks / 12).contains(&(missing as usize)), "{missing} of {blocks}");
    let holes = pair.received.chunks(1_024).zip(content.chunks(1_024)).filter(|(got, sent)| got != sent).count();
    assert_eq!(holes, missing as usize, "all other blocks are right");
    assert_eq!(pair.stopped.unwrap().retransmitted, 0);
}

#[test]
fn a_client_with_a_window_of_losses_repairs_the_recent_ones_alone() {
    // Requests come every 350 ms. A window of 100 ms covers a quarter of the losses.
    let losses = Losses::Window(Duration::from_millis(100));
    let options = ClientOptions { losses, ..client_options(50) };
    let link = Link { loss: 0.05, ..Link::default() };
    let mut pair = Pair::new(options, ServerOptions::default(), Files::new(&[("a", 20_000_000)]), link, 4);
    let ClientEvent::Done { missing } = pair.get("a") else { panic!("not done") };
    let repaired = pair.stopped.unwrap().retransmitted;
    assert!(missing > 100 && repaired > 50 && repaired < u64::from(missing), "{missing} missing, {repaired} repaired");
}

#[test]
fn a_server_caps_the_rate_that_a_client_asks_for() {
    let options = ServerOptions { max_rate: Some(Rate::from_megabits_per_second(10)), ..ServerOptions::default() };
    let mut pair = Pair::new(client_options(1_000), options, Files::new(&[("a", 5_000_000)]), Link::default(), 5);
    let before = pair.now;
    assert_eq!(pair.get("a"), ClientEvent::Done { missing: 0 });
    let goodput = 5_000_000.0 * 8.0 / (pair.now - before).as_secs_f64();
    assert!(goodput < 10e6, "{goodput} bit/s");
}

/// The delay begins at three times its target, and a good report each 350 ms divides it by 1.2. So a short file has much
/// less than the rate that was asked for. The original's program took 200 MB with a mean of 461 Mbit/s.
#[test]
fn a_short_file_has_the_mean_rate_that_the_start_of_the_original_leaves() {
    for (megabytes, expected) in [(30_u32, 267.0), (100, 379.0)] {
        let files = Files::new(&[("a", megabytes as usize * 1_000_000)]);
        let mut pair = Pair::new(client_options(650), ServerOptions::default(), files, Link::default(), 6);
        let before = pair.now;
        assert_eq!(pair.get("a"), ClientEvent::Done { missing: 0 });
        let megabits = f64::from(megabytes) * 8.0 / (pair.now - before).as_secs_f64();
        assert!((0.93 * expected..=1.01 * expected).contains(&megabits), "{megabytes} MB: {megabits} Mbit/s");
    }
}

#[test]
fn attack_c1_the_secret_of_the_original_opens_nothing_here_unless_it_is_set() {
    let kitten = b"kitten".to_vec();
    for (server, client, admitted) in [
        (vec![], vec![], true),
        (vec![], kitten.clone(), false),
        (kitten.clone(), vec![], false),
        (kitten.clone(), kitten, true),
    ] {
        let server = ServerOptions { secret: server, ..ServerOptions::default() };
        let options = ClientOptions { secret: client, ..client_options(100) };
        let mut pair = Pair::new(options, server, Files::new(&[("a", 1)]), Link::default(), 6);
        if admitted {
            assert_eq!(pair.get("a"), ClientEvent::Done { missing: 0 });
        } else {
            assert_eq!(pair.faults(), [Some(Fault::WrongSecret); 2]);
        }
    }
}

#[test]
fn attack_c1_without_a_secret_the_proof_tells_nothing_that_is_secret() {
    // With one, whoever poses as a server learns the digest of a challenge of his choice, and can search.
    let mut client = Client::new(ClientOptions::default(), start());
    client.handle_channel(start(), &0x2006_1025_u32.to_be_bytes()).unwrap();
    client.handle_channel(start(), &challenge()).unwrap();
    assert_eq!(said(&mut client, start())[4..], Proof::of(&challenge(), b"").0);
}
