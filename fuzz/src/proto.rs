//! The endpoints: two of them on a bad network with applications that do anything, and one that is sent anything.

mod corpora;
mod pair;
mod protocol;
mod raw;
mod script;
mod udt2004;
mod udt4;

use bolero::check;
use farhaul_proto::{udt, udt2004 as ancestor};
use farhaul_units::Rng;

use self::pair::Pair;
use self::protocol::Protocol;
use self::script::Script;

/// Bytes of a list of operations: some hundreds of them.
const MAX_SCRIPT: usize = 1_500;
/// Bytes of a list of datagrams.
const MAX_DATAGRAMS: usize = 4_000;

/// Lists of operations and of datagrams that plain `cargo test` makes up beside the corpora.
const GENERATED: u64 = 1_000;

#[test]
fn operations() {
    check!().with_max_len(MAX_SCRIPT).with_iterations(1_000).for_each(run_operations::<udt::Endpoint>);
}

#[test]
fn datagrams() {
    check!().with_max_len(MAX_DATAGRAMS).with_iterations(1_000).for_each(run_datagrams::<udt::Endpoint>);
}

#[test]
fn operations_2004() {
    check!().with_max_len(MAX_SCRIPT).with_iterations(1_000).for_each(run_operations::<ancestor::Endpoint>);
}

#[test]
fn datagrams_2004() {
    check!().with_max_len(MAX_DATAGRAMS).with_iterations(1_000).for_each(run_datagrams::<ancestor::Endpoint>);
}

#[test]
fn long_lists_of_operations() {
    for seed in 0..GENERATED {
        run_operations::<udt::Endpoint>(&operations_of(seed));
        run_operations::<ancestor::Endpoint>(&operations_of(seed));
    }
}

#[test]
fn plausible_datagrams() {
    (0..GENERATED).for_each(run_plausible::<udt::Endpoint>);
    (0..GENERATED).for_each(run_plausible::<ancestor::Endpoint>);
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
        run_operations::<udt::Endpoint>(&operations_of(seed));
        run_operations::<ancestor::Endpoint>(&operations_of(seed));
        for more in 10 * seed..10 * seed + 10 {
            run_plausible::<udt::Endpoint>(more);
            run_plausible::<ancestor::Endpoint>(more);
        }
    }
}

fn run_operations<P: Protocol>(input: &[u8]) {
    let mut script = Script::new(input);
    let mut pair = Pair::<P>::new(&mut script);
    while pair.step(&mut script) {}
    pair.conclude();
}

fn run_datagrams<P: Protocol>(input: &[u8]) {
    raw::run::<P>(&mut Script::new(input));
}

fn run_plausible<P: Protocol>(seed: u64) {
    run_datagrams::<P>(&raw::plausible::<P>(seed));
}

/// Bolero's own inputs are mostly short; connections take a while to get into trouble.
fn operations_of(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let length = 20 + rng.next_u64() as usize % (MAX_SCRIPT - 20);
    (0..length).map(|_| rng.next_u64() as u8).collect()
}
