//! RBUDP in a blast connection: streams both ways, credit, dialogues.

use super::*;
use crate::blast::tests::pair::Pair;
use crate::blast::tests::testing::content;
use farhaul_proto::transport::Streams;

#[test]
fn streams_run_both_ways_in_order_in_spite_of_loss() {
    let mut pair = Pair::<Rbudp>::of(at_rate(200), Config::default(), Config::default());
    pair.loss = 0.02;
    let (near, far) = pair.connect();
    let mut sent = [Vec::new(), Vec::new()];
    for round in 0..10 {
        for (side, id) in [(0, near), (1, far)] {
            for bytes in [content(7), content(100_000 + round), content(16 << 10), content(1)] {
                pair.write(side, id, &bytes);
                sent[side].extend_from_slice(&bytes);
            }
        }
        pair.run_for(Duration::from_millis(3));
    }
    assert!(pair.read_until(1, far, sent[0].len()) == sent[0]);
    assert!(pair.read_until(0, near, sent[1].len()) == sent[1]);
}

#[test]
fn credit_keeps_a_reader_that_pauses_from_losing_anything() {
    let mut pair = Pair::<Rbudp>::of(at_rate(900), Config::default(), buffers(500_000));
    let (near, far) = pair.connect();
    let content = content(2_000_000);
    let mut written = pair.write_some(0, near, &content);
    for _ in 0..3_000 {
        pair.run_for(Duration::from_millis(1));
        written += pair.write_some(0, near, &content[written..]);
    }
    assert!((400_000..=500_000).contains(&written), "{written} bytes of credit");
    let before = pair.data_datagrams[0];
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.data_datagrams[0], before, "nothing leaves without credit");
    let mut received = Vec::new();
    while received.len() < content.len() {
        let ready = pair.ends[1].readable(far);
        received.extend(pair.read_until(1, far, ready.min(content.len() - received.len())));
        written += pair.write_some(0, near, &content[written..]);
        pair.run_for(Duration::from_millis(1));
    }
    assert!(received == content);
    assert_eq!(pair.ends[0].stats(pair.now, near).map(|stats| stats.totals.packets_retransmitted), Some(0));
}

#[test]
fn a_long_transfer_keeps_the_models_time() {
    let mut pair = Pair::<Rbudp>::of(at_rate(400), Config::default(), Config::default());
    let (near, far) = pair.connect();
    pair.run_for(Duration::from_millis(50));
    let content = content(20_000_000);
    let start = pair.now;
    pair.write(0, near, &content);
    assert!(pair.read_until(1, far, content.len()) == content);
    let model = Model::new(megabits(400), Duration::from_millis(20), PAYLOAD as u16);
    let ratio = (pair.now - start).as_secs_f64() / model.seconds(20_000_000);
    assert!((0.95..1.1).contains(&ratio), "{ratio} of the model's time");
}
