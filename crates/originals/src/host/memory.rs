//! The memory that all sessions of a server may hold together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A budget of bytes. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    left: Arc<AtomicU64>,
}

/// A share of a budget, until its drop.
#[derive(Debug)]
pub(super) struct Share {
    budget: Budget,
    bytes: u64,
}

impl Budget {
    pub(super) fn new(bytes: u64) -> Self {
        Self { left: Arc::new(AtomicU64::new(bytes)) }
    }

    /// Takes a share; `None` if less is left.
    pub(super) fn take(&self, bytes: u64) -> Option<Share> {
        let take = |left: u64| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        Some(Share { budget: self.clone(), bytes })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.left.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_comes_back_when_it_is_dropped() {
        let budget = Budget::new(10);
        let most = budget.take(7).unwrap();
        assert!(budget.clone().take(4).is_none());
        let rest = budget.take(3).unwrap();
        drop(most);
        assert!(budget.take(7).is_some() && budget.take(8).is_none());
        drop(rest);
        assert!(budget.take(10).is_some());
    }
}
