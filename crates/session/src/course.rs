//! The state of a session of any kind: its phase, or its end.

use crate::error::{Abort, SessionError};

/// A session is in one of its own phases `P`, or has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Course<P> {
    /// In progress.
    At(P),
    /// Everything is done and confirmed.
    Done,
    /// The session failed.
    Failed(SessionError),
}

impl<P: Default> Default for Course<P> {
    fn default() -> Self {
        Self::At(P::default())
    }
}

impl<P: Copy + PartialEq> Course<P> {
    pub(crate) fn is_at(&self, phase: P) -> bool {
        self.phase() == Some(phase)
    }

    /// The phase, unless the session has ended.
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

    /// Ends the session. `tell` writes the reason for the peer, unless the peer knows it.
    pub(crate) fn fail(&mut self, error: SessionError, tell: impl FnOnce(&Abort)) -> SessionError {
        if let Some(abort) = error.abort() {
            tell(&abort);
        }
        *self = Self::Failed(error.clone());
        error
    }
}
