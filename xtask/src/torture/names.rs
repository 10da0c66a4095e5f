//! Names that somebody swaps, and names that nobody would choose.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, symlink};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, Result, ensure};

use super::Outcome;
use super::bed::Bed;

pub(super) fn swapped(bed: &Bed) -> Result<Outcome> {
    let outside = bed.path("outside");
    fs::create_dir_all(outside.join("deep/er"))?;
    for name in ["c", "e", "deep/er/f"] {
        fs::write(outside.join(name), "not yours")?;
    }
    let source = bed.server(&[], "root", &["--plain"])?;
    let (is_over, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let inside = bed.path("to/t/d");
    let copies = std::thread::scope(|scope| {
        scope.spawn(|| {
            let away = inside.with_file_name("away");
            while !is_over.load(Ordering::Relaxed) {
                if fs::rename(&inside, &away).is_ok() && symlink(&outside, &inside).is_ok() {
                    swaps.fetch_add(1, Ordering::Relaxed);
                    let _ = fs::remove_file(&inside);
                    let _ = fs::rename(&away, &inside);
                }
            }
        });
        let run = || -> Result<u32> {
            let mut copies = 0;
            for _ in 0..20 {
                bed.empty_target()?;
                // It may fail by name, but never hang.
                let run = bed.pull(&[], &source.address, &["--plain"])?.end()?;
                ensure!(matches!(run.code, Some(0 | 3 | 7)), "exit code {:?}: {}", run.code, run.stderr);
                copies += 1;
            }
            Ok(copies)
        };
        let copies = run();
        is_over.store(true, Ordering::Relaxed);
        copies
    })?;
    for name in ["c", "e", "deep/er/f"] {
        ensure!(fs::read(outside.join(name))? == b"not yours", "{name} outside of the target was written");
    }
    let entries = fs::read_dir(&outside)?.count() + fs::read_dir(outside.join("deep/er"))?.count();
    ensure!(entries == 4, "something was made outside of the target");
    let swaps = swaps.into_inner();
    ensure!(swaps > 0, "nothing was swapped");
    Ok(Outcome::Right(format!("{swaps} swaps during {copies} copies, nothing outside was touched")))
}

pub(super) fn hostile(bed: &Bed) -> Result<Outcome> {
    let root = bed.path("root/t");
    let mut names: Vec<Vec<u8>> = (1..=255_u8)
        .filter(|byte| *byte != b'/')
        .flat_map(|byte| [vec![byte, b'x'], vec![b'-', byte]])
        .filter(|name| name != b"..")
        .collect();
    names
        .extend(["caf\u{e9}", "cafe\u{301}", "CAF\u{c9}", "...", " ", "~", "con", "a:b", "\u{202e}gpj"].map(Vec::from));
    names.push(vec![b'n'; 255]);
    for name in &names {
        fs::write(root.join(OsStr::from_bytes(name)), name).with_context(|| format!("{name:?}"))?;
    }
    let deep = root.join(vec!["deeper"; 60].join("/"));
    fs::create_dir_all(&deep)?;
    fs::write(deep.join("end"), "of the path")?;
    for number in 0..2000 {
        fs::write(root.join(format!("empty{number}")), "")?;
    }
    bed.empty_target()?;
    let source = bed.server(&[], "root", &["--plain"])?;
    let run = bed.pull(&[], &source.address, &["--plain"])?.end()?;
    ensure!(run.code == Some(0), "exit code {:?}: {}", run.code, run.stderr);
    bed.is_whole()?;
    let sparse = fs::File::create(bed.path("root/sparse"))?;
    sparse.set_len(4 << 30)?;
    sparse.write_all_at(b"in the middle", 2 << 30)?;
    let run = bed.pull_of("sparse", &source.address, &["--plain"])?.end()?;
    ensure!(run.code == Some(0), "4 GiB of holes: exit code {:?}: {}", run.code, run.stderr);
    ensure!(fs::metadata(bed.path("to/sparse"))?.len() == 4 << 30, "its size is another one");
    let moved = run.end["moved_bytes"].as_u64().unwrap_or(u64::MAX);
    ensure!(moved <= 64 << 20, "{moved} bytes of a file of holes were sent");
    Ok(Outcome::Right(format!(
        "{} names, 60 levels, 2000 empty files; {moved} bytes moved for 4 GiB of holes",
        names.len()
    )))
}
