//! What happens during a copy, as C sees it.

use std::ffi::{CString, c_char, c_void};

use farhaul_session::{Entry, ShownPath};
use farhaul_transfer::{Environment, Event};

use crate::border::border_of;
use crate::error::text;
use crate::fault::in_c;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[non_exhaustive]
pub enum FarhaulEventKind {
    /// The sender has listed everything: `size` bytes in `count` files.
    Expected = 0,
    /// The file `path` of `size` bytes begins to move.
    Begun = 1,
    /// Time passes. `bytes` have been acknowledged or received so far. Every 20 ms or so.
    Moved = 2,
    /// The file `path` of `size` bytes has its final name. Both sides have compared its digest.
    Placed = 3,
    /// The target has the file `path` already.
    Kept = 4,
    /// The directory `path` is complete, or a link was made.
    Made = 5,
    /// The entry `path` was removed from the target.
    Deleted = 6,
    /// `path` was not copied, for the reason in `message`.
    Failed = 7,
    /// The connection was lost. Another attempt begins after `size` milliseconds. Counts begin anew.
    Retrying = 8,
    /// `message` says what limits the copy, or what somebody should look at.
    Warning = 9,
}

/// An event. Its texts live as long as the callback runs.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FarhaulEvent {
    /// What happened. Later versions may have more kinds: ignore unknown ones.
    pub kind: FarhaulEventKind,
    /// The path in the copy, in the bytes of its name; empty if the kind has none.
    pub path: *const c_char,
    /// Words for people; empty if the kind has none.
    pub message: *const c_char,
    /// As the kind says.
    pub size: u64,
    /// As the kind says.
    pub bytes: u64,
    /// As the kind says.
    pub count: u64,
}

/// Hears events on any thread of a copy, one or several at a time. It must not wait long, not free the copy, and not leave by
/// `longjmp` or an exception.
pub type FarhaulEventCallback = Option<unsafe extern "C" fn(context: *mut c_void, event: *const FarhaulEvent)>;

/// A callback with the value that it gets.
#[derive(Clone, Copy)]
pub(crate) struct Listener {
    callback: unsafe extern "C" fn(*mut c_void, *const FarhaulEvent),
    context: *mut c_void,
}

// SAFETY: the callback hears events on any thread by its contract, and so may use its context there. This library only passes it on.
unsafe impl Send for Listener {}
// SAFETY: as above, also on several threads at a time.
unsafe impl Sync for Listener {}

impl Listener {
    pub(crate) fn new(callback: FarhaulEventCallback, context: *mut c_void) -> Option<Self> {
        callback.map(|callback| Self { callback, context })
    }

    fn tell(&self, told: Told) {
        let event = FarhaulEvent {
            kind: told.kind,
            path: told.path.as_ptr(),
            message: told.message.as_ptr(),
            size: told.size,
            bytes: told.bytes,
            count: told.count,
        };
        // SAFETY: the caller gave the callback for this context, and the event with its texts lives until it returns.
        unsafe { (self.callback)(self.context, &raw const event) };
    }
}

/// An environment whose events the callback hears.
pub(crate) fn environment(listener: Option<Listener>) -> Environment {
    match listener {
        None => Environment::default(),
        Some(listener) => Environment::reporting_to(move |event: &Event<'_>| {
            if let Some(told) = Told::of(event) {
                border_of((), || listener.tell(told));
            }
        }),
    }
}

/// An event with its texts.
struct Told {
    kind: FarhaulEventKind,
    path: CString,
    message: CString,
    size: u64,
    bytes: u64,
    count: u64,
}

impl Told {
    fn new(kind: FarhaulEventKind) -> Self {
        Self { kind, path: CString::default(), message: CString::default(), size: 0, bytes: 0, count: 0 }
    }

    fn of_entry(kind: FarhaulEventKind, entry: &Entry) -> Self {
        Self { path: CString::new(entry.path.to_bytes()).unwrap_or_default(), size: entry.size, ..Self::new(kind) }
    }

    fn of_path(kind: FarhaulEventKind, path: &ShownPath) -> Self {
        Self { path: CString::new(path.as_bytes()).unwrap_or_default(), ..Self::new(kind) }
    }

    /// `None` for events that C programs do not get.
    fn of(event: &Event<'_>) -> Option<Self> {
        use FarhaulEventKind as Kind;
        Some(match event {
            Event::Expected { files, bytes } => Self { size: *bytes, count: *files, ..Self::new(Kind::Expected) },
            Event::Begun(entry) => Self::of_entry(Kind::Begun, entry),
            Event::Moved(moved) => Self { bytes: moved.bytes(), ..Self::new(Kind::Moved) },
            Event::Placed(entry, ..) => Self::of_entry(Kind::Placed, entry),
            Event::Kept(entry, ..) => Self::of_entry(Kind::Kept, entry),
            Event::Made(entry, _) => Self::of_entry(Kind::Made, entry),
            Event::Deleted(path) => Self::of_path(Kind::Deleted, path),
            Event::Failed(path, failure, _) | Event::LeftOut(path, failure) => {
                Self { message: text(&in_c(&failure.to_string())), ..Self::of_path(Kind::Failed, path) }
            }
            Event::Skipped(path) => {
                Self { message: text("the copy broke off before it"), ..Self::of_path(Kind::Failed, path) }
            }
            Event::Retrying(pause) => {
                Self { size: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX), ..Self::new(Kind::Retrying) }
            }
            Event::Warning(words) => Self { message: text(&in_c(words)), ..Self::new(Kind::Warning) },
            _ => return None,
        })
    }
}
