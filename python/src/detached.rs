//! Values that go without the interpreter's lock.
//!
//! A drop may wait for a port: the last handle of a connection ends it, and a wait that is given up is withdrawn. The thread that has
//! the port may wait for the interpreter, because a controller in Python is called with it.

use std::mem;
use std::ops::{Deref, DerefMut};

use crate::attach::attach;
use crate::gate::detach;

/// Drops a value without the interpreter's lock, whether this thread has it or not.
pub(crate) fn let_go<T: Send>(value: T) {
    let mut value = Some(value);
    attach(|py| {
        let value = value.take();
        detach(py, || drop(value));
    });
    // Behind the end of the interpreter, this thread would not come back with its lock, and must not wait with it.
    mem::forget(value);
}

/// A value that goes so at the end of a scope.
pub(crate) struct Detached<T: Send>(Option<T>);

impl<T: Send> Detached<T> {
    /// Holds `value`.
    pub(crate) const fn new(value: T) -> Self {
        Self(Some(value))
    }
}

impl<T: Send> Deref for Detached<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is there until the drop")
    }
}

impl<T: Send> DerefMut for Detached<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("it is there until the drop")
    }
}

impl<T: Send> Drop for Detached<T> {
    fn drop(&mut self) {
        let_go(self.0.take());
    }
}
