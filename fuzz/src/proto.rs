//! The UDT4 endpoint: two of them on a bad network with applications that do anything, and one that is sent anything.

mod pair;
mod raw;
mod script;

use bolero::check;
use farhaul_units::Rng;

use pair::Pair;
use script::Script;

/// Bytes of a list of operations: some hundreds of them.
const MAX_SCRIPT: usize = 1_500;

/// Lists of operations and of datagrams that plain `cargo test` makes up beside the corpora.
const GENERATED: u64 = 1_000;

#[test]
fn operations() {
    check!().with_max_len(MAX_SCRIPT).with_iterations(1_000).for_each(run_operations);
}

#[test]
fn datagrams() {
    check!().with_max_len(4_000).with_iterations(1_000).for_each(run_datagrams);
}

#[test]
fn long_lists_of_operations() {
    (0..GENERATED).for_each(|seed| run_operations(&operations_of(seed)));
}

#[test]
fn plausible_datagrams() {
    (0..GENERATED).for_each(|seed| run_datagrams(&raw::plausible(seed)));
}

/// `FROM=1000000 cargo test -p farhaul-fuzz -- --ignored search --nocapture`: the number that it fails after is the seed.
#[test]
#[ignore = "goes on until it finds something or is stopped"]
fn search() {
    let from = std::env::var("FROM").ok().and_then(|from| from.parse().ok()).unwrap_or(GENERATED);
    for seed in from.. {
        if seed % 1_000 == 0 {
            println!("from {seed}");
        }
        run_operations(&operations_of(seed));
        (0..10).for_each(|more| run_datagrams(&raw::plausible(10 * seed + more)));
    }
}

fn run_operations(input: &[u8]) {
    let mut script = Script::new(input);
    let mut pair = Pair::new(&mut script);
    while pair.step(&mut script) {}
    pair.conclude();
}

fn run_datagrams(input: &[u8]) {
    raw::run(&mut Script::new(input));
}

/// Bolero's own inputs are mostly short; connections take a while to get into trouble.
fn operations_of(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let length = 20 + rng.next_u64() as usize % (MAX_SCRIPT - 20);
    (0..length).map(|_| rng.next_u64() as u8).collect()
}
