//! The size of the trees that a copy sends, counted while it runs.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use farhaul_transfer::CopyJob;

use crate::output::tracker::{Total, Tracker};

/// Counts once somebody wants to know the total, on a thread of its own. Clones share everything. Dropping all of them ends it.
#[derive(Clone)]
pub(super) struct Counting {
    shared: Arc<Shared>,
}

struct Shared {
    /// What is to be counted; empty once it began.
    sources: Mutex<Vec<PathBuf>>,
    tracker: Tracker,
    ends: Arc<AtomicBool>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
    }
}

impl Counting {
    /// For a copy whose amounts go to `tracker`. What is known at once is told it.
    pub(super) fn of(copy: &CopyJob, tracker: &Tracker) -> Self {
        let mut sources = copy.source_paths().to_vec();
        if let Some(bytes) = copy.size() {
            tracker.set_total(Total { bytes: Some(bytes), files: Some(sources.len() as u64) });
            sources.clear();
        }
        // Only the copy itself judges by its filters.
        if copy.leaves_out() {
            sources.clear();
        }
        let shared = Shared { sources: Mutex::new(sources), tracker: tracker.clone(), ends: Arc::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Somebody wants to know.
    pub(super) fn begin(&self) {
        let sources = std::mem::take(&mut *self.shared.sources.lock().unwrap_or_else(PoisonError::into_inner));
        if sources.is_empty() {
            return;
        }
        let (tracker, ends) = (self.shared.tracker.clone(), Arc::clone(&self.shared.ends));
        // Without a thread, the total stays unknown.
        let _ = thread::Builder::new().name("total".into()).spawn(move || {
            if let Some(total) = count(sources, &ends) {
                tracker.set_total(total);
            }
        });
    }
}

/// Counts the regular files of these trees and their bytes. Links below them are not followed, and what cannot be read has no
/// size. `None` if it was ended.
fn count(sources: Vec<PathBuf>, ends: &AtomicBool) -> Option<Total> {
    let (mut files, mut bytes) = (0, 0);
    let mut folders = Vec::new();
    // As a copy does, a source may be a link.
    for source in sources {
        match source.metadata() {
            Ok(metadata) if metadata.is_dir() => folders.push(source),
            Ok(metadata) => {
                files += 1;
                bytes += metadata.len();
            }
            Err(_) => {}
        }
    }
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if ends.load(Ordering::Acquire) {
                return None;
            }
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                folders.push(entry.path());
            } else if metadata.is_file() {
                files += 1;
                bytes += metadata.len();
            }
        }
    }
    Some(Total { bytes: Some(bytes), files: Some(files) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_files_of_trees_count_and_links_in_them_do_not() {
        let base = std::env::temp_dir().join(format!("farhaul-total-{}", std::process::id()));
        fs::create_dir_all(base.join("tree/below")).unwrap();
        fs::write(base.join("tree/one"), [0; 10]).unwrap();
        fs::write(base.join("tree/below/two"), [0; 20]).unwrap();
        fs::write(base.join("alone"), [0; 30]).unwrap();
        symlink(&base, base.join("tree/below/loop")).unwrap();
        let sources = vec![base.join("tree"), base.join("alone"), base.join("missing")];
        let total = count(sources.clone(), &AtomicBool::new(false));
        let ended = count(sources, &AtomicBool::new(true));
        fs::remove_dir_all(&base).unwrap();
        assert_eq!(total, Some(Total { bytes: Some(60), files: Some(3) }));
        assert_eq!(ended, None);
    }
}
