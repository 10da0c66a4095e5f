//! Memory of Python's objects, read and written in place.
//!
//! An object keeps its memory where it is for as long as somebody holds its buffer. Nothing keeps other threads of Python from
//! changing the bytes meanwhile: they must not, as for the sockets of the standard library.

use std::mem;
use std::ptr::null_mut;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

use crate::attach::attach;

/// Bytes of an object, to be read.
pub(crate) struct Readable(Buffer);

/// Bytes of an object, to be written.
pub(crate) struct Writable(Buffer);

/// A buffer whose drop takes the interpreter's lock, if there is still one. `None` while it is dropped.
struct Buffer(Option<PyUntypedBuffer>);

impl Buffer {
    fn start(&self) -> (*mut u8, usize) {
        self.0.as_ref().map_or((null_mut(), 0), |buffer| (buffer.buf_ptr().cast(), buffer.len_bytes()))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut buffer = self.0.take();
        attach(|_| drop(buffer.take()));
        // Behind the end of the interpreter its memory goes with the process.
        mem::forget(buffer);
    }
}

impl Readable {
    /// The bytes, in order.
    pub(crate) fn bytes(&self) -> &[u8] {
        let (start, len) = self.0.start();
        if len == 0 {
            return &[];
        }
        #[expect(unsafe_code, reason = "the border to Python")]
        // SAFETY: the buffer is contiguous, which `extract` has checked, and holds `len` bytes for as long as it is held.
        unsafe {
            std::slice::from_raw_parts(start, len)
        }
    }
}

impl Writable {
    /// The bytes, in order.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        let (start, len) = self.0.start();
        if len == 0 {
            return &mut [];
        }
        #[expect(unsafe_code, reason = "the border to Python")]
        // SAFETY: the buffer is contiguous and writable, which `extract` has checked, and holds `len` bytes for as long as it is held.
        unsafe {
            std::slice::from_raw_parts_mut(start, len)
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Readable {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(Buffer(Some(contiguous(value)?))))
    }
}

impl<'py> FromPyObject<'_, 'py> for Writable {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let buffer = contiguous(value)?;
        if buffer.readonly() {
            return Err(PyBufferError::new_err("the buffer is read-only"));
        }
        Ok(Self(Buffer(Some(buffer))))
    }
}

fn contiguous(value: Borrowed<'_, '_, PyAny>) -> PyResult<PyUntypedBuffer> {
    let buffer = PyUntypedBuffer::get(&value)?;
    if !buffer.is_c_contiguous() {
        return Err(PyBufferError::new_err(
            "the buffer has gaps: copy it first, for instance by numpy.ascontiguousarray",
        ));
    }
    Ok(buffer)
}
