//! The extension module of the Python package `farhaul`.
//!
//! ```text
//! farhaul/*.py ─▶ _farhaul ─▶ the crates `farhaul` and `farhaul-transfer`
//! ```
//!
//! | part | owns |
//! | --- | --- |
//! | `wait` | calls that wait: without the interpreter's lock, and with a look for signals |
//! | `async_call`, `event_loop` | calls of tasks, and how they are woken without a runtime |
//! | `off_thread` | work that blocks, as a future |
//! | `fork` | objects that a child process must not use |
//! | `on_drop` | the end of an object, and whether an exception ends it |
//! | `unclosed` | warnings of objects that are dropped |
//! | `detached` | values that go without the interpreter's lock |
//! | `attach` | the interpreter's lock on threads that the interpreter does not know |
//! | `gate` | the return of threads to the interpreter, which its end closes |
//! | `settings` | keyword arguments of connections |
//! | `stream`, `buffer` | streams, and the memory of Python's objects |
//! | `listener`, `messages` | ports to which others connect, and messages with boundaries |
//! | `files` | files of another host, for the file system in `farhaul/fsspec.py` |
//! | `copy`, `file_records` | copies, and what became of each of their files |
//! | `log` | what `logging` is told |
//! | `serve` | servers of directories |
//! | `keys` | keys of this side |
//! | `controller` | congestion controllers in Python |
//! | `laboratory` | experiments: figures, scenarios, simulations |
//! | `error`, `report` | exceptions and reports |

mod async_call;
mod attach;
mod buffer;
mod controller;
mod copy;
mod detached;
mod error;
mod event_loop;
mod file_records;
mod files;
mod fork;
mod gate;
mod keys;
mod laboratory;
mod listener;
mod log;
mod messages;
mod off_thread;
mod on_drop;
mod report;
mod serve;
mod settings;
mod stream;
mod unclosed;
mod wait;

#[pyo3::pymodule]
mod _farhaul {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::async_call::AsyncCall;
    #[pymodule_export]
    use crate::attach::{after_fork, before_fork};
    #[pymodule_export]
    use crate::controller::{
        AckView, ControlView, DeliveryView, LossView, PacketView, PacketsView, PathView, TimeoutView, register,
    };
    #[pymodule_export]
    use crate::copy::{Progress, RunningCopy};
    #[pymodule_export]
    use crate::files::{RemoteFiles, RemoteWriter};
    #[pymodule_export]
    use crate::gate::{begin_child, end, has_ended, wait_idle};
    #[pymodule_export]
    use crate::keys::make_key;
    #[pymodule_export]
    use crate::laboratory::{RunningExperiment, StoredRuns, run_arena, shipped_figures};
    #[pymodule_export]
    use crate::listener::Listener;
    #[pymodule_export]
    use crate::messages::{MessageListener, MessageSocket};
    #[pymodule_export]
    use crate::on_drop::OnDrop;
    #[pymodule_export]
    use crate::report::Report;
    #[pymodule_export]
    use crate::serve::Server;
    #[pymodule_export]
    use crate::stream::{Stats, Stream};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
