//! The settings of a client.

use farhaul_units::{Duration, Rate};
use farhaul_wire::tsunami::Ratio;

use crate::tsunami::DEFAULT_PATIENCE;
use farhaul_protocols::tsunami::{delay, error_rate};

/// Default block size of the original.
const DEFAULT_BLOCK: u32 = 1_024;
/// Default target rate of the original.
const DEFAULT_RATE: Rate = Rate::from_megabits_per_second(650);

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The secret of the server; empty for none. It protects little (attack C1).
    pub secret: Vec<u8>,
    /// Bytes of a block, 1 to 65 501. Default 1024. With its header of 6 bytes and those of IP and UDP it should fit
    /// the path's packets.
    pub block_size: u32,
    /// The rate to ask for, blocks alone. Default 650 Mbit/s. The format holds 4.29 Gbit/s at most.
    pub rate: Rate,
    /// The error rate above which the server slows down, in thousandths of a percent. Default 7500.
    pub error_threshold: u32,
    /// The growth of the delay between datagrams when everything is lost. Default 25/24.
    pub slower: Ratio,
    /// The factor of the delay after a report below the threshold. Default 5/6.
    pub faster: Ratio,
    /// The weight of earlier reports in the error rate, percent. Default 25.
    pub history: u8,
    /// Which lost blocks to ask for. Default all.
    pub losses: Losses,
    /// Most bytes of a file that is accepted. Default no limit.
    pub largest: u64,
    /// Longest time for a step of the dialogue, and longest silence of the server during a transfer. Default 15 s.
    pub patience: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            secret: Vec::new(),
            block_size: DEFAULT_BLOCK,
            rate: DEFAULT_RATE,
            error_threshold: delay::DEFAULT_THRESHOLD,
            slower: delay::DEFAULT_SLOWER,
            faster: delay::DEFAULT_FASTER,
            history: error_rate::DEFAULT_HISTORY,
            losses: Losses::Repair,
            largest: u64::MAX,
            patience: DEFAULT_PATIENCE,
        }
    }
}

/// Which lost blocks a client asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Losses {
    /// All of them (`lossless`).
    #[default]
    Repair,
    /// Those of the last so long. Older ones stay missing (`losswindow`).
    Window(Duration),
    /// None. The file has holes (`losswindow 0`).
    Accept,
}
