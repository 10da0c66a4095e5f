//! The arena of control laws: random paths, with goals by stated formulas.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;

use farhaul_lab::arena::{self, Family, Results};
use farhaul_lab::sweep::{Options, Work, sweep};
use farhaul_lab::world::Venue;
use farhaul_lab::{LabError, folder};
use farhaul_transfer::Cancellation;
use pyo3::prelude::*;
use serde_json::{Value, json};

use super::fault;
use crate::error::{raised, usage};
use crate::off_thread::OffThread;
use crate::report::as_object;
use crate::wait::wait_for;

/// Runs `controllers` in so many cells of each of these seeds, and of these families, and writes the pages into the folder `out`.
///
/// Gives a record for each controller: its name, cells passed, cells, mean score, and the same by family.
#[pyfunction]
pub(crate) fn run_arena<'py>(
    py: Python<'py>,
    controllers: Vec<String>,
    paths: (Vec<u64>, usize, Vec<String>),
    jobs: Option<usize>,
    out: Option<PathBuf>,
) -> PyResult<Bound<'py, PyAny>> {
    let (seeds, cells, families) = paths;
    let controllers = arena::named(&controllers);
    controllers.iter().try_for_each(|name| arena::check(name)).map_err(|wrong| usage(wrong.to_string()))?;
    let families: Result<Vec<Family>, _> = families.iter().map(|name| name.parse()).collect();
    let families = families.map_err(|wrong| usage(wrong.to_string()))?;
    let threads = jobs.unwrap_or_else(|| available_parallelism().map_or(1, usize::from)).max(1);
    let (stop, cancellation) = (Arc::<AtomicBool>::default(), Cancellation::default());
    let stopping = Arc::clone(&stop);
    cancellation.on_cancel(move || stopping.store(true, Ordering::Relaxed));
    let work = move || {
        let results = run(controllers, seeds, (cells, families), threads, &stop)?;
        if let Some(out) = out {
            let write = |name: &str, text: String| {
                let path = out.join(name);
                fs::write(&path, text).map_err(|source| LabError::file(path, source))
            };
            fs::create_dir_all(&out).map_err(|source| LabError::file(&out, source))?;
            write("arena.html", arena::page(&results))?;
            write("field.html", arena::field(&results))?;
        }
        Ok(record(&results))
    };
    let mut result = OffThread::begin("arena", cancellation, move || work().map_err(|error: LabError| fault(&error)))
        .map_err(raised)?;
    loop {
        if let Some(ended) = wait_for(py, None, &mut result)? {
            return as_object(py, &ended.and_then(|result| result).map_err(raised)?);
        }
    }
}

fn run(
    controllers: Vec<String>,
    seeds: Vec<u64>,
    (count, families): (usize, Vec<Family>),
    threads: usize,
    stop: &AtomicBool,
) -> Result<Results, LabError> {
    let cells: Vec<_> = seeds.iter().flat_map(|seed| arena::cells(*seed, count, &families)).collect();
    let jobs = arena::jobs(&cells, &controllers, &folder::build()?)?;
    let mut works = [Work { figure: "arena".to_owned(), jobs, store: None }];
    let mut records = Vec::new();
    let options = Options {
        venue: &Venue::Simulator,
        threads,
        stop,
        progress: &mut |_, _| {},
        ran: &mut |_| {},
        finished: &mut |_, all| {
            records = all;
            Ok(())
        },
    };
    sweep(&mut works, options)?;
    let command = format!("farhaul.lab.arena({controllers:?}, seeds={seeds:?}, cells={count})");
    Ok(Results::new(seeds, controllers, cells, &records, command))
}

fn record(results: &Results) -> Value {
    let families = results.families();
    let law = |(place, name): (usize, &String)| {
        let all = results.tally(place, None);
        let by_family: serde_json::Map<String, Value> = families
            .iter()
            .map(|family| (family.to_string(), results.tally(place, Some(*family)).score.into()))
            .collect();
        json!({ "controller": name, "passed": all.passed, "cells": all.cells, "score": all.score, "families": by_family })
    };
    results.controllers.iter().enumerate().map(law).collect()
}
