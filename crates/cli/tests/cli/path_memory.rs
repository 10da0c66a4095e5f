//! What a connection has found of its path is kept for the next one, unless the user does not want it.

use std::fs;
use std::path::Path;

use crate::process::{Scratch, Server, farhaul_where};

/// Transfers of which one finds the rate.
const TRIES: usize = 5;

#[test]
fn a_transfer_leaves_the_rate_of_its_path_unless_no_path_memory_forbids_it() {
    let scratch = Scratch::new();
    let server = Server::begin(&["bench"]);
    let kept_by = |folder: &str, options: &[&str]| {
        let cache = scratch.dir(folder);
        let arguments = [&["bench", "--plain", "--connect", &server.address, "--bytes", "30MB"], options].concat();
        farhaul_where(&[("XDG_CACHE_HOME", &cache)], &arguments).succeeds();
        fs::read_to_string(Path::new(&cache).join("farhaul/recent.toml")).ok()
    };
    // On a busy machine a transfer may end before it has found the rate.
    let kept = (0..TRIES).find_map(|_| kept_by("with", &[])).expect("it is kept");
    let line = kept.lines().find(|line| line.starts_with(&format!("\"{}\" = {{ rate_bps = ", server.address)));
    assert!(line.is_some_and(|line| line.contains(", rtt_us = ")), "{kept}");
    assert_eq!(kept_by("without", &["--no-path-memory"]), None);
    // A program that cannot keep anything works as before.
    let cache = scratch.at("file");
    fs::write(&cache, "").unwrap();
    let arguments = ["bench", "--plain", "--connect", &server.address, "--bytes", "1MB"];
    farhaul_where(&[("XDG_CACHE_HOME", &cache)], &arguments).succeeds();
}
