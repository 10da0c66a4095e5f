//! The C interface of Farhaul: `libfarhaul.so.0` and `farhaul.h`.
//!
//! The header is made from this crate and checked in (`include/farhaul.h`). It is the reference for C programs, and its first
//! comment has the contract of pointers, threads and processes. `docs/book/c.md` is the guide.
//!
//! ```text
//! C ─▶ a function of this crate ─▶ border: a fork, a panic ─▶ farhaul, farhaul-transfer
//!            └─ null pointers and texts: argument               └─ fault ─▶ result, error object
//! ```
//!
//! | part | owns |
//! | --- | --- |
//! | `border` | panics and forks at the border to C, the error object and the results of a call |
//! | `fork` | whether the process was forked, and the end of handles |
//! | `argument` | pointers and texts of C as values of Rust |
//! | `result`, `fault`, `error` | the codes; a failure on this side of the border, and on the other one |
//! | `key`, `options`, `endpoint` | keys, settings, UDP ports |
//! | `listener`, `connection`, `stream`, `message` | connections, and their bytes and messages |
//! | `canceller`, `watch`, `stats` | ending calls that wait, readiness for event loops, figures |
//! | `version` | the version of the library |
//! | `access` | how remote ends of copies and file services are reached |
//! | `copy`, `event`, `files` | copies with their events, files of another host |
//!
//! A parameter that C may pass as a null pointer is an `Option`, so the compiler demands the check. Most functions are safe code
//! then: only texts and buffers need `unsafe`.
#![expect(unsafe_code, reason = "texts and buffers of C programs, exported names")]
#![expect(clippy::missing_safety_doc, reason = "the header begins with the contract of all pointers")]

mod access;
mod argument;
mod border;
mod canceller;
mod connection;
mod copy;
mod endpoint;
mod error;
mod event;
mod fault;
mod files;
mod fork;
mod key;
mod listener;
mod message;
mod options;
mod result;
mod stats;
mod stream;
mod version;
mod watch;

pub use access::*;
pub use canceller::*;
pub use connection::*;
pub use copy::*;
pub use endpoint::*;
pub use error::*;
pub use event::*;
pub use files::*;
pub use key::*;
pub use listener::*;
pub use message::*;
pub use options::*;
pub use result::*;
pub use stats::*;
pub use stream::*;
pub use version::*;
pub use watch::*;

/// The header permits any number of threads at each of these handles.
const fn is_for_threads<T: Send + Sync>() {}

const _: () = {
    is_for_threads::<FarhaulAccess>();
    is_for_threads::<FarhaulCancellation>();
    is_for_threads::<FarhaulCanceller>();
    is_for_threads::<FarhaulConnection>();
    is_for_threads::<FarhaulCopy>();
    is_for_threads::<FarhaulEndpoint>();
    is_for_threads::<FarhaulError>();
    is_for_threads::<FarhaulFiles>();
    is_for_threads::<FarhaulKey>();
    is_for_threads::<FarhaulListener>();
    is_for_threads::<FarhaulOptions>();
    is_for_threads::<FarhaulWatch>();
};
