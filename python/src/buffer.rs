//! Memory of Python's objects, read and written in place.
//!
//! An object keeps its memory where it is for as long as somebody holds its buffer. Nothing keeps other threads of Python from
//! changing the bytes meanwhile: they must not, as for the sockets of the standard library.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

/// Bytes of an object, to be read.
pub(crate) struct Readable(PyUntypedBuffer);

/// Bytes of an object, to be written.
pub(crate) struct Writable(PyUntypedBuffer);

impl Readable {
    /// The bytes, in order.
    pub(crate) fn bytes(&self) -> &[u8] {
        let (start, len) = (self.0.buf_ptr().cast_const().cast::<u8>(), self.0.len_bytes());
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
        let (start, len) = (self.0.buf_ptr().cast::<u8>(), self.0.len_bytes());
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
        contiguous(value).map(Self)
    }
}

impl<'py> FromPyObject<'_, 'py> for Writable {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let buffer = contiguous(value)?;
        if buffer.readonly() {
            return Err(PyBufferError::new_err("the buffer is read-only"));
        }
        Ok(Self(buffer))
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
