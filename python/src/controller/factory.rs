//! What makes a controller for each connection: a class, or any other callable without arguments.

use std::sync::Arc;

use farhaul_cc::{Controller, Spec};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

use super::bridge::Bridge;
use crate::error::usage;

/// Makes controllers.
#[derive(Clone)]
pub(crate) struct Factory(Arc<Made>);

pub(super) struct Made {
    pub(super) make: Py<PyAny>,
    /// The name of the class or function.
    pub(super) label: String,
}

impl Factory {
    /// The controllers that `make` makes.
    ///
    /// # Errors
    /// `make` is not callable.
    pub(crate) fn of(make: &Bound<'_, PyAny>) -> PyResult<Self> {
        if !make.is_callable() {
            let what =
                "a controller is a name, or a class below farhaul.cc.Controller or another callable that makes one";
            return Err(PyTypeError::new_err(format!("{what}; this is {}", make.repr()?)));
        }
        let label = match make.getattr("__name__") {
            Ok(name) => name.str()?.to_string(),
            Err(_) => make.get_type().name()?.to_string(),
        };
        Ok(Self(Arc::new(Made { make: make.clone().unbind(), label })))
    }

    /// The same as settings take it, under the name of the class.
    pub(crate) fn spec(self) -> Spec {
        let label = self.0.label.clone();
        self.named(&label)
    }

    /// The same with a text that changes whenever the code of the class does.
    pub(crate) fn revised(self) -> PyResult<Spec> {
        let revision = self.revision()?;
        Ok(self.spec().revised(&revision))
    }

    fn revision(&self) -> PyResult<String> {
        static REVISION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        Python::attach(|py| {
            let revision = REVISION.import(py, "farhaul._revision", "revision_of")?;
            revision.call1((&self.0.make,))?.extract()
        })
    }

    /// The same under another name.
    fn named(self, name: &str) -> Spec {
        Spec::made(name, move |seed| Box::new(Bridge::new(&self.0, seed)) as Box<dyn Controller>)
    }
}

/// The controller of an argument: a name with its options, or what makes controllers.
pub(crate) fn controller(value: &Bound<'_, PyAny>) -> PyResult<Spec> {
    match value.cast::<PyString>() {
        Ok(text) => text.to_cow()?.parse().map_err(|error| usage(format!("argument 'controller': {error}"))),
        Err(_) => Factory::of(value).map(Factory::spec),
    }
}

/// Gives a name to a class in this process, as the registry of Rust has names. It replaces the class that had it before.
#[pyfunction(name = "_register")]
pub(crate) fn register(name: &str, controller: &Bound<'_, PyAny>) -> PyResult<()> {
    let factory = Factory::of(controller)?;
    let revision = factory.revision()?;
    factory.named(name).revised(&revision).register().map_err(|error| usage(error.to_string()))
}
