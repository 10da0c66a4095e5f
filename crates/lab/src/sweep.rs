//! Many runs on all cores, the longest first; what was run before is not run again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::error::LabError;
use crate::record::Record;
use crate::run::run;
use crate::scenario::Job;
use crate::store::Store;

/// How a sweep is run.
pub struct Options<'a> {
    /// Runs at a time; at least one.
    pub threads: usize,
    /// Runs are broken off once this is true.
    pub stop: &'a AtomicBool,
    /// Told after each run how many there are by now, of how many.
    pub progress: &'a mut dyn FnMut(usize, usize),
}

/// Runs what `store` does not have yet and adds it there; gives all records in the order of `jobs`.
///
/// # Errors
/// A run breaks off, or its record cannot be written. What was finished by then is in the store.
pub fn sweep(
    figure: &str,
    jobs: &[Job],
    mut store: Option<&mut Store>,
    options: Options<'_>,
) -> Result<Vec<Record>, LabError> {
    let known = |job: &Job| store.as_ref().and_then(|store| store.get(&job.key)).cloned();
    let mut records: Vec<Option<Record>> = jobs.iter().map(known).collect();
    let mut missing: Vec<usize> = (0..jobs.len()).filter(|&index| records[index].is_none()).collect();
    missing.sort_by(|&left, &right| jobs[right].weight().total_cmp(&jobs[left].weight()));
    let mut done = jobs.len() - missing.len();
    (options.progress)(done, jobs.len());
    let failed = AtomicBool::new(false);
    let over = || failed.load(Ordering::Relaxed) || options.stop.load(Ordering::Relaxed);
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..options.threads.clamp(1, missing.len().max(1)) {
            let (sender, missing, next, over) = (sender.clone(), &missing, &next, &over);
            scope.spawn(move || {
                while let Some(&index) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if over() || sender.send((index, guarded(figure, &jobs[index], over))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut first = Ok(());
        for (index, result) in results {
            let kept = result.and_then(|record| match &mut store {
                Some(store) => store.add(&record).map(|()| record),
                None => Ok(record),
            });
            match kept {
                Ok(record) => {
                    records[index] = Some(record);
                    done += 1;
                    (options.progress)(done, jobs.len());
                }
                Err(error) => {
                    failed.store(true, Ordering::Relaxed);
                    // What broke off because of another's failure says nothing.
                    first = first.and(Err(error));
                }
            }
        }
        first
    })?;
    records.into_iter().collect::<Option<Vec<_>>>().ok_or(LabError::Stopped)
}

/// A run whose panic is an error.
fn guarded(figure: &str, job: &Job, over: &dyn Fn() -> bool) -> Result<Record, LabError> {
    let guarded = catch_unwind(AssertUnwindSafe(|| run(figure, job, None, over)));
    guarded.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(LabError::Broken { name: job.name(figure), reason: words.unwrap_or("a defect").to_owned() })
    })
}
