//! The habits of a walk: everything that follows from its number.

use farhaul_units::{Duration, Instant, Rate, Rng};

use crate::blast::rate::RateChoice;

/// The habits of both applications, the path and its faults.
#[derive(Clone, Debug)]
pub(crate) struct Habits {
    /// Rate of both links, and bytes that wait before them.
    pub(crate) rate: Rate,
    pub(crate) queue: usize,
    /// One-way delay.
    pub(crate) delay: Duration,
    /// Probabilities that a datagram is lost, comes twice, or comes late; and how late.
    pub(crate) loss: f64,
    pub(crate) twice: f64,
    pub(crate) late: f64,
    pub(crate) late_by: Duration,
    /// Times without any datagrams from a side.
    pub(crate) outages: Vec<(usize, Instant, Instant)>,
    /// Probability that a block of channel bytes is held up, and how long. All later ones are as well.
    pub(crate) stall: f64,
    pub(crate) stall_by: Duration,
    /// Whether the host reports a block as handed over only when it has arrived.
    pub(crate) slow_host: bool,
    /// Times in which a side's host sleeps.
    pub(crate) sleeps: Vec<(usize, Instant, Instant)>,
    pub(crate) mss: [u32; 2],
    pub(crate) buffers: [u64; 2],
    /// Bytes that each side sends, and the longest write.
    pub(crate) bytes: [usize; 2],
    pub(crate) writes: [usize; 2],
    /// Probability and length of a pause before a write, and before a read.
    pub(crate) pauses: [(f64, Duration); 2],
    /// The longest read.
    pub(crate) reads: usize,
}

impl Habits {
    /// Those of a number.
    pub(crate) fn of(seed: u64) -> Self {
        let rng = &mut Rng::new(seed);
        let start = Instant::from_nanos(1_000_000_000);
        let megabits = [1, 10, 100, 1_000, 10_000][rng.below(5) as usize];
        let delay = Duration::from_micros([0, 20, 1_000, 10_000, 50_000, 500_000][rng.below(6) as usize]);
        let most = [0, 2_000, 40_000, 400_000, 3_000_000][rng.below(5) as usize];
        let loss = [0.0, 0.0, 0.001, 0.03, 0.3][rng.below(5) as usize];
        let mut spans = |chance: f64, longest: u64| {
            let mut spans = Vec::new();
            while rng.chance(chance) && spans.len() < 3 {
                // A host that is away while UDP is tried counts as one behind a firewall.
                let from = start + delay * 12 + Duration::from_millis(700 + rng.below(2_000));
                spans.push((rng.below(2) as usize, from, from + Duration::from_millis(rng.below(longest))));
            }
            spans
        };
        let (outages, sleeps) = (spans(0.3, 1_500), spans(0.15, 9_000));
        let mss = [576, 1_500, 1_500, 9_000, 65_535];
        let sizes = [1 << 16, 200_000, 1 << 20, 8 << 20];
        let writes = [1, 100, 5_000, 70_000, 1 << 20];
        let mut pick = |values: &[u64]| values[rng.below(values.len() as u64) as usize];
        let (mss, buffers) = ([pick(&mss), pick(&mss)], [pick(&sizes), pick(&sizes)]);
        let writes = [pick(&writes) as usize, pick(&writes) as usize];
        let reads = [100, 5_000, 1 << 20][rng.below(3) as usize];
        // Single bytes take many steps, so there are fewer of them.
        let mut bytes_of = |write: usize, chance: f64| {
            let most = most.min(4_000 * write.min(reads) as u64);
            if rng.chance(chance) { rng.below(most + 1) as usize } else { 0 }
        };
        let bytes = [bytes_of(writes[0], 0.8), bytes_of(writes[1], 0.5)];
        let pause = |rng: &mut Rng| (0.1 * rng.below(3) as f64, Duration::from_millis(rng.below(300)));
        Self {
            rate: Rate::from_megabits_per_second(megabits),
            queue: 3_000 + rng.below(2_000_000) as usize,
            delay,
            loss,
            twice: [0.0, 0.02][rng.below(2) as usize],
            late: [0.0, 0.05][rng.below(2) as usize],
            late_by: Duration::from_micros(rng.below(60_000)),
            outages,
            stall: [0.0, 0.0, 0.05][rng.below(3) as usize],
            stall_by: Duration::from_millis(rng.below(600)),
            slow_host: rng.chance(0.3),
            sleeps,
            mss: mss.map(|mss| mss as u32),
            buffers,
            bytes,
            writes,
            pauses: [pause(rng), pause(rng)],
            reads,
        }
    }
}

/// A rate near that of the path, or none.
pub(crate) fn some_rate(rng: &mut Rng, habits: &Habits) -> RateChoice {
    match [None, Some(0.3), Some(0.9), Some(1.0), Some(1.5), Some(4.0)][rng.below(6) as usize] {
        None => RateChoice::Auto,
        Some(share) => {
            RateChoice::Fixed(Rate::from_bits_per_second((habits.rate.bits_per_second() as f64 * share) as u64))
        }
    }
}
