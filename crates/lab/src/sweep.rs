//! Makes many runs on all cores, the longest first. Stored runs are not made again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::error::LabError;
use crate::record::Record;
use crate::run::run;
use crate::scenario::Job;
use crate::store::Store;
use crate::world::Venue;

/// The runs of one figure.
pub struct Work {
    /// The name in its records.
    pub figure: String,
    /// Its runs.
    pub jobs: Vec<Job>,
    /// The stored records; `None` to store nothing.
    pub store: Option<Store>,
}

/// The settings of a sweep.
pub struct Options<'a> {
    /// The world of the runs.
    pub venue: &'a Venue,
    /// The number of runs at a time, at least one. The emulator makes one at a time.
    pub threads: usize,
    /// Stops all runs once it is true.
    pub stop: &'a AtomicBool,
    /// Called before the first and after each run, with the number of finished runs and of all.
    pub progress: &'a mut dyn FnMut(usize, usize),
    /// Called with each new record.
    pub ran: &'a mut dyn FnMut(&Record),
    /// Called after the last run of a figure, with the figure's place and its records in the order of its jobs.
    pub finished: &'a mut dyn FnMut(usize, Vec<Record>) -> Result<(), LabError>,
}

/// Makes all runs that are not stored, figure after figure, the longest runs of each first.
///
/// # Errors
/// A run failed, or a file could not be written. Finished runs are stored.
pub fn sweep(works: &mut [Work], mut options: Options<'_>) -> Result<(), LabError> {
    let mut collected: Vec<Vec<Option<Record>>> = works.iter().map(known).collect();
    let queue = queue(works, &collected);
    let all: usize = works.iter().map(|work| work.jobs.len()).sum();
    let mut done = all - queue.len();
    (options.progress)(done, all);
    for (place, records) in collected.iter_mut().enumerate() {
        finish(place, records, &mut options)?;
    }
    let failed = AtomicBool::new(false);
    let over = || failed.load(Ordering::Relaxed) || options.stop.load(Ordering::Relaxed);
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    let (mut stores, jobs): (Vec<_>, Vec<_>) =
        works.iter_mut().map(|work| (work.store.as_mut(), (work.figure.as_str(), work.jobs.as_slice()))).unzip();
    let mut first = Ok(());
    std::thread::scope(|scope| {
        let threads = if options.venue.world().is_simulated() { options.threads } else { 1 };
        for _ in 0..threads.clamp(1, queue.len().max(1)) {
            let (sender, queue, jobs, next, over, venue) = (sender.clone(), &queue, &jobs, &next, &over, options.venue);
            scope.spawn(move || {
                while let Some(&(place, index)) = queue.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (figure, jobs) = jobs[place];
                    if over() || sender.send((place, index, guarded(figure, &jobs[index], venue, over))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (place, index, result) in results {
            let kept = result.and_then(|record| {
                if let Some(store) = &mut stores[place] {
                    store.add(&record)?;
                }
                (options.ran)(&record);
                collected[place][index] = Some(record);
                done += 1;
                (options.progress)(done, all);
                finish(place, &mut collected[place], &mut options)
            });
            if let Err(error) = kept {
                failed.store(true, Ordering::Relaxed);
                // Runs that stop because of another's failure have no error of their own.
                if first.is_ok() {
                    first = Err(error);
                }
            }
        }
    });
    first?;
    if done < all { Err(LabError::Stopped) } else { Ok(()) }
}

/// The stored records of a figure's runs.
fn known(work: &Work) -> Vec<Option<Record>> {
    // Invalid runs are made again.
    let found = |job: &Job| work.store.as_ref()?.get(&job.key).filter(|record| record.is_valid()).cloned();
    work.jobs.iter().map(found).collect()
}

/// The figures and jobs to run, in the order of their start.
fn queue(works: &[Work], collected: &[Vec<Option<Record>>]) -> Vec<(usize, usize)> {
    let mut queue = Vec::new();
    for (place, (work, records)) in works.iter().zip(collected).enumerate() {
        let mut missing: Vec<usize> = (0..records.len()).filter(|&index| records[index].is_none()).collect();
        missing.sort_by(|&left, &right| work.jobs[right].weight().total_cmp(&work.jobs[left].weight()));
        queue.extend(missing.into_iter().map(|index| (place, index)));
    }
    queue
}

/// Hands over the records of a figure, once, when none is missing.
fn finish(place: usize, records: &mut Vec<Option<Record>>, options: &mut Options<'_>) -> Result<(), LabError> {
    if records.is_empty() || records.iter().any(Option::is_none) {
        return Ok(());
    }
    (options.finished)(place, std::mem::take(records).into_iter().flatten().collect())
}

/// Makes a run, and turns a panic into an error.
fn guarded(figure: &str, job: &Job, venue: &Venue, over: &dyn Fn() -> bool) -> Result<Record, LabError> {
    let guarded = catch_unwind(AssertUnwindSafe(|| run(figure, job, venue, None, over)));
    guarded.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(LabError::Broken { name: job.name(figure), reason: words.unwrap_or("a defect").to_owned() })
    })
}
