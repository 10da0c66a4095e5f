//! Reports of copies.

use farhaul_transfer::Report as Figures;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value;

/// Fields that records leave out where they have no value.
const IF_ANY: [&str; 7] =
    ["session", "requests", "packets_dropped", "model_bps", "control_stream", "suite", "peer_key"];

/// What a copy did: the fields of the record `end` of the command.
#[pyclass(module = "farhaul", frozen, mapping)]
pub(crate) struct Report(Py<PyDict>);

impl Report {
    /// The report with these figures.
    pub(crate) fn of(py: Python<'_>, figures: &Figures) -> PyResult<Self> {
        let value = serde_json::to_value(figures).map_err(|error| crate::error::usage(error.to_string()))?;
        let fields = as_object(py, &value)?.cast_into::<PyDict>()?;
        for name in IF_ANY.into_iter().filter(|name| value.get(name).is_none()) {
            fields.set_item(name, py.None())?;
        }
        Ok(Self(fields.unbind()))
    }
}

#[pymethods]
impl Report {
    /// All fields, in a new dictionary.
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("copy")?.getattr("deepcopy")?.call1((&self.0,))
    }

    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        match self.0.bind(py).get_item(name)? {
            Some(value) => Ok(value.unbind()),
            None => Err(PyAttributeError::new_err(format!("a report has no field '{name}'"))),
        }
    }

    fn __dir__(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let mut names: Vec<String> = self.0.bind(py).keys().extract()?;
        names.push("as_dict".to_owned());
        Ok(names)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let field = |name| self.__getattr__(py, name).map(|value| value.to_string()).unwrap_or_default();
        Ok(format!(
            "<farhaul.Report: {} bytes, {} files, {} s, {} failed>",
            field("bytes"),
            field("files"),
            field("seconds"),
            field("failed")
        ))
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, (Py<PyDict>,))> {
        let made = py.get_type::<Self>().getattr("_of_dict")?.unbind();
        Ok((made, (self.0.clone_ref(py),)))
    }

    #[staticmethod]
    fn _of_dict(fields: Py<PyDict>) -> Self {
        Self(fields)
    }
}

/// A value of JSON as an object.
pub(crate) fn as_object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Value::String(value) => value.into_pyobject(py)?.into_any(),
        Value::Array(values) => {
            let values: Vec<_> = values.iter().map(|value| as_object(py, value)).collect::<PyResult<_>>()?;
            PyList::new(py, values)?.into_any()
        }
        Value::Object(fields) => {
            let all = PyDict::new(py);
            for (name, value) in fields {
                all.set_item(name, as_object(py, value)?)?;
            }
            all.into_any()
        }
        Value::Number(value) => match (value.as_u64(), value.as_i64()) {
            (Some(value), _) => value.into_pyobject(py)?.into_any(),
            (None, Some(value)) => value.into_pyobject(py)?.into_any(),
            (None, None) => value.as_f64().unwrap_or_default().into_pyobject(py)?.into_any(),
        },
    })
}
