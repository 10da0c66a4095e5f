//! Many runs on all cores, the longest first; what was run before is not run again.

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
    /// What its records call it.
    pub figure: String,
    /// Its runs.
    pub jobs: Vec<Job>,
    /// Where records are kept, and what was run before; `None` to keep nothing.
    pub store: Option<Store>,
}

/// How a sweep is run.
pub struct Options<'a> {
    /// Where runs take place.
    pub venue: &'a Venue,
    /// Runs at a time; at least one. In the emulator it is one.
    pub threads: usize,
    /// Runs are broken off once this is true.
    pub stop: &'a AtomicBool,
    /// Told before the first and after each run how many there are by now, of how many.
    pub progress: &'a mut dyn FnMut(usize, usize),
    /// Gets each record of a run that was done now.
    pub ran: &'a mut dyn FnMut(&Record),
    /// Gets all records of a figure once its last run is done: its place, and the records in the order of its jobs.
    pub finished: &'a mut dyn FnMut(usize, Vec<Record>) -> Result<(), LabError>,
}

/// Runs whatever the stores do not have yet, figure after figure, the longest runs of each first.
///
/// # Errors
/// A run breaks off, or something cannot be written. What was finished by then is in the stores.
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
                // What broke off because of another's failure says nothing.
                if first.is_ok() {
                    first = Err(error);
                }
            }
        }
    });
    first?;
    if done < all { Err(LabError::Stopped) } else { Ok(()) }
}

/// What the store has.
fn known(work: &Work) -> Vec<Option<Record>> {
    // What cannot be believed is tried again.
    let found = |job: &Job| work.store.as_ref()?.get(&job.key).filter(|record| record.is_valid()).cloned();
    work.jobs.iter().map(found).collect()
}

/// Figures and jobs that are to be run, in the order in which they are begun.
fn queue(works: &[Work], collected: &[Vec<Option<Record>>]) -> Vec<(usize, usize)> {
    let mut queue = Vec::new();
    for (place, (work, records)) in works.iter().zip(collected).enumerate() {
        let mut missing: Vec<usize> = (0..records.len()).filter(|&index| records[index].is_none()).collect();
        missing.sort_by(|&left, &right| work.jobs[right].weight().total_cmp(&work.jobs[left].weight()));
        queue.extend(missing.into_iter().map(|index| (place, index)));
    }
    queue
}

/// Gives away the records of a figure, once, if none is missing.
fn finish(place: usize, records: &mut Vec<Option<Record>>, options: &mut Options<'_>) -> Result<(), LabError> {
    if records.is_empty() || records.iter().any(Option::is_none) {
        return Ok(());
    }
    (options.finished)(place, std::mem::take(records).into_iter().flatten().collect())
}

/// A run whose panic is an error.
fn guarded(figure: &str, job: &Job, venue: &Venue, over: &dyn Fn() -> bool) -> Result<Record, LabError> {
    let guarded = catch_unwind(AssertUnwindSafe(|| run(figure, job, venue, None, over)));
    guarded.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(LabError::Broken { name: job.name(figure), reason: words.unwrap_or("a defect").to_owned() })
    })
}
