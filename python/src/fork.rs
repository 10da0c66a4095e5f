//! Objects that must not be used in a child process: `fork` copies the memory of connections, and not their threads.

use std::{mem, process};

use pyo3::prelude::*;

use crate::detached::let_go;
use crate::error::forked;

/// An object of the process that made it.
///
/// In a child process it cannot be reached, and its drop does nothing: the threads that would answer do not exist there, and a packet
/// from the child would end the connection of the parent.
#[derive(Debug)]
pub(crate) struct OfProcess<T: Send> {
    id: u32,
    /// `None` once it is dropped.
    inner: Option<T>,
}

impl<T: Send> OfProcess<T> {
    /// An object of this process.
    pub(crate) fn new(inner: T) -> Self {
        Self { id: process::id(), inner: Some(inner) }
    }

    /// The object.
    ///
    /// # Errors
    /// It belongs to the parent process.
    pub(crate) fn get(&self) -> PyResult<&T> {
        self.inner.as_ref().filter(|_| self.is_here()).ok_or_else(forked)
    }

    fn is_here(&self) -> bool {
        self.id == process::id()
    }
}

impl<T: Send> Drop for OfProcess<T> {
    fn drop(&mut self) {
        let inner = self.inner.take();
        if self.is_here() {
            let_go(inner);
        } else {
            mem::forget(inner);
        }
    }
}
