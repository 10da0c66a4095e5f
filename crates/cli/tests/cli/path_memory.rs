//! What a connection has found of its path is kept for the next one, unless the user does not want it.

use std::fs;
use std::path::Path;

use crate::limits::relay;
use crate::process::{Scratch, Server, farhaul_where};

#[test]
fn a_transfer_leaves_the_rate_of_its_path_unless_no_path_memory_forbids_it() {
    let scratch = Scratch::new();
    let server = Server::begin(&["bench"]);
    // Slower than any host. A transfer that the path limits for less than a second leaves nothing.
    let (_relay, address) = relay(&server, &["--rate", "50mbit", "--delay", "2ms"]);
    let kept_by = |folder: &str, seconds: &str, options: &[&str]| {
        let cache = scratch.dir(folder);
        let words = [&["bench", "--plain", "--connect", &address, "--seconds", seconds], options].concat();
        farhaul_where(&[("XDG_CACHE_HOME", &cache)], &words).succeeds();
        fs::read_to_string(Path::new(&cache).join("farhaul/recent.toml")).ok()
    };
    assert_eq!(kept_by("short", "0.3", &[]), None);
    let kept = kept_by("with", "2", &[]).expect("it is kept");
    let line = kept.lines().find(|line| line.starts_with(&format!("\"{address}\" = {{ rate_bps = ")));
    assert!(line.is_some_and(|line| line.contains(", rtt_us = ")), "{kept}");
    assert_eq!(kept_by("without", "2", &["--no-path-memory"]), None);
    // A program that cannot keep anything works as before.
    let cache = scratch.at("file");
    fs::write(&cache, "").unwrap();
    let arguments = ["bench", "--plain", "--connect", &server.address, "--bytes", "1MB"];
    farhaul_where(&[("XDG_CACHE_HOME", &cache)], &arguments).succeeds();
}
