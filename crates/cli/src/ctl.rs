//! Control of running programs of the same user: each listens on a socket of its own, and `farhaul ctl` calls it.
//!
//! ```text
//! $XDG_RUNTIME_DIR/farhaul/PID.sock   or   /tmp/farhaul-UID/PID.sock
//! client    {"command":"rate","rate":"50mbit"}↵
//! server    {"ok":true,"status":{…}}↵   or   {"ok":false,"error":"…"}↵
//! ```
//!
//! | part | owns |
//! | --- | --- |
//! | `folder` | the folder of the sockets, which nobody else may enter |
//! | `socket` | one socket: binding, answering, calling |
//! | `request` | the commands |

mod folder;
mod request;
mod socket;

use farhaul_transfer::{Cancellation, Throttle};
use farhaul_units::Rate;
use serde_json::{Map, Value, json};

pub(crate) use folder::folder;
pub(crate) use request::{Cap, Request};
pub(crate) use socket::{Listening, Socket, call};

use crate::exit::{Code, Fault};

/// A running verb, as its user controls it.
pub(crate) struct Controlled {
    pub(crate) verb: &'static str,
    /// What it does, in words.
    pub(crate) what: String,
    /// The cap that it began with.
    pub(crate) cap: Option<Rate>,
    pub(crate) throttle: Throttle,
    pub(crate) cancellation: Cancellation,
    /// Its amounts.
    pub(crate) amounts: Box<dyn Fn() -> Map<String, Value> + Send>,
}

impl Controlled {
    /// Carries out a request. Returns the answer.
    fn answer(&self, request: Result<Request, String>) -> Value {
        let stops = request == Ok(Request::Stop);
        match request.and_then(|request| self.carry_out(&request)) {
            Ok(()) => {
                let mut status = self.status();
                status["stopping"] = (stops || self.cancellation.is_cancelled()).into();
                json!({ "ok": true, "status": status })
            }
            Err(error) => json!({ "ok": false, "error": error }),
        }
    }

    fn carry_out(&self, request: &Request) -> Result<(), String> {
        let changed = match request {
            Request::Rate { rate: Cap(cap) } => self.throttle.set_rate(*cap),
            Request::Pause => self.throttle.pause(),
            Request::Resume => self.throttle.resume(),
            // It stops after the answer.
            Request::Status | Request::Stop => Ok(()),
        };
        changed.map_err(|error| error.to_string())
    }

    /// Stops the verb.
    fn stop(&self) {
        self.cancellation.cancel_because(Fault::new(Code::Terminated, "stopped by `farhaul ctl`"));
    }

    fn status(&self) -> Value {
        let set = self.throttle.rate();
        let mut status = Map::new();
        status.insert("pid".into(), std::process::id().into());
        status.insert("verb".into(), self.verb.into());
        status.insert("what".into(), self.what.as_str().into());
        status.insert("version".into(), env!("CARGO_PKG_VERSION").into());
        status.insert("rate_cap_bps".into(), set.unwrap_or(self.cap).map(Rate::bits_per_second).into());
        status.insert("paused".into(), self.throttle.is_paused().into());
        status.extend((self.amounts)());
        status.into()
    }
}

/// Listens for the user of this program, until the result is dropped. A program without a place for its socket does without: it
/// has better things to do.
pub(crate) fn listen(controlled: Controlled) -> Option<Listening> {
    Socket::bind().ok()?.listen(controlled).ok()
}
