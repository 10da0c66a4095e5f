//! The end of an object, for objects that must know whether an exception ends them.

use std::mem;

use pyo3::prelude::*;

use crate::attach::attach;

/// Calls a function when it is dropped, with whether an exception is on its way to somebody who catches it. `__del__` cannot know that:
/// the interpreter hides the exception from it.
#[pyclass(module = "farhaul._farhaul", frozen)]
pub(crate) struct OnDrop(Option<Py<PyAny>>);

#[pymethods]
impl OnDrop {
    #[new]
    fn new(call: Py<PyAny>) -> Self {
        Self(Some(call))
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        let Some(call) = self.0.take() else { return };
        let mut call = Some(call);
        // Behind the end of the interpreter, another thread would not come back from the call.
        attach(|py| {
            let Some(call) = call.take() else { return };
            let raised = PyErr::take(py);
            if let Err(error) = call.call1(py, (raised.is_some(),)) {
                error.write_unraisable(py, Some(call.bind(py)));
            }
            if let Some(error) = raised {
                error.restore(py);
            }
        });
        mem::forget(call);
    }
}
