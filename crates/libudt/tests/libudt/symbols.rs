//! Exported symbols.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::library::{folder, peer, skip};

/// What Farhaul's library has beyond Debian's: mangled names of these classes.
const SUPERSET: [&str; 2] = ["6CUDTCC", "7CPacket"];

/// The symbols that a library defines for programs. Templates of the C++ library are in every program that uses them.
fn symbols(library: &Path) -> Option<BTreeSet<String>> {
    let Ok(output) = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output() else {
        return skip("nm is not installed (Debian: apt install binutils)");
    };
    assert!(output.status.success(), "{library:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.split_whitespace().nth(2));
    Some(names.filter(|name| !name.starts_with("_ZNS") && !name.starts_with("_ZSt")).map(str::to_owned).collect())
}

fn reference() -> Option<BTreeSet<String>> {
    peer()?;
    let found = Command::new("g++").arg("-print-file-name=libudt.so.0").output().unwrap();
    symbols(Path::new(String::from_utf8(found.stdout).unwrap().trim()))
}

#[test]
fn every_symbol_of_debians_library_is_there_and_no_foreign_one() {
    let Some((ours, theirs)) = folder().and_then(|folder| symbols(&folder.join("libudt.so.0"))).zip(reference()) else {
        return;
    };
    assert!(theirs.len() > 100, "{theirs:?}");
    let missing: Vec<_> = theirs.difference(&ours).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let foreign = |name: &&&String| !SUPERSET.iter().any(|class| name.contains(class));
    let foreign: Vec<_> =
        ours.difference(&theirs).collect::<Vec<_>>().iter().filter(foreign).copied().cloned().collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}

#[test]
fn the_library_has_the_name_that_programs_look_for_and_stays_loaded() {
    let Some(folder) = folder() else { return };
    let Ok(output) = Command::new("readelf").arg("-d").arg(folder.join("libudt.so.0")).output() else {
        skip::<()>("readelf is not installed (Debian: apt install binutils)");
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("[libudt.so.0]"), "{text}");
    assert!(text.contains("NODELETE"), "{text}");
}
