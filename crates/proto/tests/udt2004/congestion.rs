use crate::scenario::{paper, path, stats, throughput, utilisation};

#[test]
fn look() {
    for (megabits, rtt, queue) in [
        (100, 10, 100),
        (100, 10, 1000),
        (1000, 10, 1000),
        (10, 10, 100),
        (1000, 100, 10000),
        (10, 100, 100),
        (1, 10, 100),
    ] {
        let t = std::time::Instant::now();
        let (rate, run) = throughput(paper, path(megabits, rtt, queue), (5, 20));
        let s = stats(&run, 0);
        let r = stats(&run, 1);
        println!(
            "{megabits} Mbit/s {rtt} ms q{queue}: {:.3} lost {} warn {} rtt {:?} cap {:?} AS {:?} period {:?} cwnd {} exp {} resent {} acks {} sent {} in {:?}",
            utilisation(rate, megabits),
            s.totals.packets_lost_sending,
            r.totals.delay_warnings_sent,
            s.rtt,
            s.capacity,
            s.arrival_rate,
            s.send_period,
            s.cwnd,
            s.totals.timeouts,
            s.totals.packets_retransmitted,
            r.totals.acks_sent,
            s.totals.packets_sent,
            t.elapsed()
        );
    }
}
