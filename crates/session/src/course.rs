//! How far a session is, and how it ended: the same for every kind of session.

use crate::error::{Abort, SessionError};

/// A session is in one of its own phases `P`, or over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Course<P> {
    /// At work.
    At(P),
    /// All is said and confirmed.
    Done,
    /// It will not be done.
    Failed(SessionError),
}

impl<P: Copy + PartialEq> Course<P> {
    pub(crate) fn is_at(&self, phase: P) -> bool {
        self.phase() == Some(phase)
    }

    /// The phase, unless it is over.
    pub(crate) const fn phase(&self) -> Option<P> {
        match self {
            Self::At(phase) => Some(*phase),
            _ => None,
        }
    }

    pub(crate) const fn is_over(&self) -> bool {
        matches!(self, Self::Done | Self::Failed(_))
    }

    pub(crate) const fn error(&self) -> Option<&SessionError> {
        match self {
            Self::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// Ends it; `tell` writes what the peer hears of it, if that does not know.
    pub(crate) fn fail(&mut self, error: SessionError, tell: impl FnOnce(&Abort)) -> SessionError {
        if let Some(abort) = error.abort() {
            tell(&abort);
        }
        *self = Self::Failed(error.clone());
        error
    }
}
