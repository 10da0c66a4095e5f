//! Whether a copy ends, for loops and waits of its store that a claim of the peer makes long.

use std::fmt;
use std::sync::Arc;

use crate::failure::{FailCode, Failure};

/// Asks whether the copy ends. Clones ask the same. By default it never does.
#[derive(Clone, Default)]
pub struct Ends(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Ends {
    /// The copy ends once `ends` says so.
    pub fn when(ends: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(ends)))
    }

    /// Fails once the copy ends.
    ///
    /// # Errors
    /// The copy ends.
    pub fn check(&self) -> Result<(), Failure> {
        match &self.0 {
            Some(ends) if ends() => Err(Failure::new(FailCode::GivenUp, "the copy was stopped meanwhile")),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ends").finish_non_exhaustive()
    }
}
