//! The names that the plots and scores of a figure can mention.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::scenario::Job;
use crate::scenario::vocabulary::Vocabulary;

/// All names that plots and scores of a figure can mention.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Metrics and series of each curve.
    pub curves: BTreeMap<String, Vocabulary>,
    /// The values of each axis, as the scenario writes them.
    pub axes: BTreeMap<String, BTreeSet<String>>,
}

impl Names {
    /// The names of these runs.
    pub(crate) fn of(jobs: &[Job]) -> Self {
        let mut names = Self::default();
        // Runs that differ in their seed alone share a setup, and the first of them keeps the series.
        for jobs in jobs.chunk_by(|one, other| Arc::ptr_eq(&one.setup, &other.setup)) {
            let job = &jobs[0];
            let vocabulary = Vocabulary::of(&job.setup, job.series);
            names.curves.entry(job.curve.clone()).or_default().merge(vocabulary);
            for (axis, value) in &job.point {
                names.axes.entry(axis.clone()).or_default().insert(value.text.clone());
            }
        }
        names
    }

    /// Metrics and series of these curves.
    pub(crate) fn vocabularies<'n>(&'n self, curves: &[&str]) -> Vec<&'n Vocabulary> {
        curves.iter().filter_map(|curve| self.curves.get(*curve)).collect()
    }
}
