//! A session, as other threads see it.

use super::{Progress, Stop};

/// What other threads have of a session: they read its figures and end it. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct SessionHandle {
    /// Its figures.
    pub progress: Progress,
    /// Ends it.
    pub stop: Stop,
}
