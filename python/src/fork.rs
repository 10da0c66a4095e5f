//! Objects that must not be used everywhere: not in a child process, because `fork` copies the memory of connections and not their
//! threads, and not in a controller's callback.

use std::{mem, process, thread};

use pyo3::prelude::*;

use crate::controller::is_in_callback;
use crate::detached::let_go;
use crate::error::{forked, in_callback};

/// An object of the process that made it.
///
/// In a child process it cannot be reached, and its drop does nothing: the threads that would answer do not exist there, and a packet
/// from the child would end the connection of the parent.
///
/// In a controller's callback it cannot be reached either. Its drop never waits for a port with the interpreter's lock in hand, which
/// the thread that has the port may wait for.
#[derive(Debug)]
pub(crate) struct OfProcess<T: Send + 'static> {
    id: u32,
    /// `None` once it is dropped.
    inner: Option<T>,
}

impl<T: Send + 'static> OfProcess<T> {
    /// An object of this process.
    pub(crate) fn new(inner: T) -> Self {
        Self { id: process::id(), inner: Some(inner) }
    }

    /// The object.
    ///
    /// # Errors
    /// It belongs to the parent process, or this is a controller's callback.
    pub(crate) fn get(&self) -> PyResult<&T> {
        if is_in_callback() {
            return Err(in_callback());
        }
        self.inner.as_ref().filter(|_| self.is_here()).ok_or_else(forked)
    }

    /// The object, for its drop and its `repr`; `None` where it cannot be reached.
    pub(crate) fn here(&self) -> Option<&T> {
        self.inner.as_ref().filter(|_| self.is_here() && !is_in_callback())
    }

    fn is_here(&self) -> bool {
        self.id == process::id()
    }
}

impl<T: Send + 'static> Drop for OfProcess<T> {
    fn drop(&mut self) {
        let inner = self.inner.take();
        if !self.is_here() {
            mem::forget(inner);
        } else if is_in_callback() {
            // This thread has a port, and the drop may wait for it. Without a thread it is left to the end of the process.
            let inner = mem::ManuallyDrop::new(inner);
            let _ = thread::Builder::new().name("drop".into()).spawn(|| drop(mem::ManuallyDrop::into_inner(inner)));
        } else {
            let_go(inner);
        }
    }
}
