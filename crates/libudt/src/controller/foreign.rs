//! Factories and controllers of the program, behind pointers.
#![expect(unsafe_code, reason = "the program's controllers are C++ objects")]

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

/// The functions of the C++ part. None of them unwinds.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Calls {
    /// Makes a controller for a socket; null if the factory fails.
    create: unsafe extern "C" fn(factory: *mut c_void, socket: i32) -> *mut c_void,
    destroy_factory: unsafe extern "C" fn(factory: *mut c_void),
    destroy: unsafe extern "C" fn(controller: *mut c_void),
    init: unsafe extern "C" fn(controller: *mut c_void, view: *const View, settings: *mut Settings),
    close: unsafe extern "C" fn(controller: *mut c_void),
    on_ack: unsafe extern "C" fn(controller: *mut c_void, view: *const View, seq: i32, settings: *mut Settings),
    on_loss: unsafe extern "C" fn(
        controller: *mut c_void,
        view: *const View,
        list: *const i32,
        words: i32,
        settings: *mut Settings,
    ),
    on_timeout: unsafe extern "C" fn(controller: *mut c_void, view: *const View, settings: *mut Settings),
    on_sent: unsafe extern "C" fn(
        controller: *mut c_void,
        view: *const View,
        packets: *const Packet,
        count: usize,
        settings: *mut Settings,
    ),
    on_received: unsafe extern "C" fn(
        controller: *mut c_void,
        view: *const View,
        packets: *const Packet,
        count: usize,
        settings: *mut Settings,
    ),
    on_custom: unsafe extern "C" fn(
        controller: *mut c_void,
        view: *const View,
        kind: i32,
        body: *mut u8,
        bytes: i32,
        settings: *mut Settings,
    ),
}

/// What a controller reads of its connection.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct View {
    /// Packets.
    pub(super) max_window: f64,
    /// Packets a second, as is the next.
    pub(super) bandwidth: i32,
    pub(super) recv_rate: i32,
    pub(super) mss: i32,
    /// The last packet sent.
    pub(super) sent: i32,
    /// Microseconds.
    pub(super) rtt: i32,
}

/// What a controller has set.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Settings {
    /// Microseconds.
    pub(super) period: f64,
    /// Packets.
    pub(super) window: f64,
    /// Microseconds; zero for UDT's own.
    pub(super) ack_period: i32,
    /// Packets; zero for UDT's own.
    pub(super) ack_interval: i32,
    /// Microseconds; zero for UDT's own.
    pub(super) rto: i32,
}

/// A data packet.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Packet {
    pub(super) seq: i32,
    pub(super) message: i32,
    /// Microseconds since the connection began.
    pub(super) stamp: i32,
    /// Bytes.
    pub(super) payload: i32,
}

/// A factory. The last handle destroys it.
#[derive(Clone, Debug)]
pub(crate) struct Factory(pub(super) Arc<OwnedFactory>);

#[derive(Debug)]
pub(super) struct OwnedFactory {
    pointer: NonNull<c_void>,
    calls: Calls,
}

// SAFETY: UDT calls factories from several threads, and programs are written for that.
unsafe impl Send for OwnedFactory {}
// SAFETY: as above.
unsafe impl Sync for OwnedFactory {}

impl Factory {
    /// Takes a factory over. `None` if it is null.
    ///
    /// # Safety
    /// The functions fit the factory, which nobody else destroys.
    pub(crate) unsafe fn take(pointer: *mut c_void, calls: Calls) -> Option<Self> {
        Some(Self(Arc::new(OwnedFactory { pointer: NonNull::new(pointer)?, calls })))
    }

    /// Makes a controller for a socket; `None` if the factory fails.
    pub(super) fn create(&self, socket: i32) -> Option<OwnedController> {
        let OwnedFactory { pointer, calls } = *self.0;
        // SAFETY: the factory is alive.
        let made = unsafe { (calls.create)(pointer.as_ptr(), socket) };
        Some(OwnedController { pointer: NonNull::new(made)?, calls })
    }
}

impl Drop for OwnedFactory {
    fn drop(&mut self) {
        // SAFETY: it is alive, and nobody uses it after this.
        unsafe { (self.calls.destroy_factory)(self.pointer.as_ptr()) }
    }
}

/// The address of a controller, for `getsockopt`. The connection owns it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object(pub(crate) usize);

/// A controller. Its drop destroys it.
#[derive(Debug)]
pub(super) struct OwnedController {
    pointer: NonNull<c_void>,
    calls: Calls,
}

// SAFETY: libudt calls a controller from its own threads, one at a time, as the owner of this does.
unsafe impl Send for OwnedController {}

impl OwnedController {
    pub(super) fn object(&self) -> Object {
        Object(self.pointer.as_ptr() as usize)
    }

    pub(super) fn init(&mut self, view: &View, settings: &mut Settings) {
        // SAFETY: the controller is alive, and the functions keep no pointer. The same holds below.
        unsafe { (self.calls.init)(self.pointer.as_ptr(), view, settings) }
    }

    pub(super) fn close(&mut self) {
        // SAFETY: as in `init`.
        unsafe { (self.calls.close)(self.pointer.as_ptr()) }
    }

    pub(super) fn on_ack(&mut self, view: &View, seq: i32, settings: &mut Settings) {
        // SAFETY: as in `init`.
        unsafe { (self.calls.on_ack)(self.pointer.as_ptr(), view, seq, settings) }
    }

    pub(super) fn on_loss(&mut self, view: &View, list: &[i32], settings: &mut Settings) {
        let words = i32::try_from(list.len()).unwrap_or(0);
        // SAFETY: as in `init`; the list has so many words.
        unsafe { (self.calls.on_loss)(self.pointer.as_ptr(), view, list.as_ptr(), words, settings) }
    }

    pub(super) fn on_timeout(&mut self, view: &View, settings: &mut Settings) {
        // SAFETY: as in `init`.
        unsafe { (self.calls.on_timeout)(self.pointer.as_ptr(), view, settings) }
    }

    pub(super) fn on_sent(&mut self, view: &View, packets: &[Packet], settings: &mut Settings) {
        // SAFETY: as in `init`; there are so many packets.
        unsafe { (self.calls.on_sent)(self.pointer.as_ptr(), view, packets.as_ptr(), packets.len(), settings) }
    }

    pub(super) fn on_received(&mut self, view: &View, packets: &[Packet], settings: &mut Settings) {
        // SAFETY: as in `init`; there are so many packets.
        unsafe { (self.calls.on_received)(self.pointer.as_ptr(), view, packets.as_ptr(), packets.len(), settings) }
    }

    pub(super) fn on_custom(&mut self, view: &View, kind: u16, body: &mut [u8], settings: &mut Settings) {
        let bytes = i32::try_from(body.len()).unwrap_or(0);
        let (pointer, body) = (self.pointer.as_ptr(), body.as_mut_ptr());
        // SAFETY: as in `init`; the body has so many bytes, which the controller may change.
        unsafe { (self.calls.on_custom)(pointer, view, i32::from(kind), body, bytes, settings) }
    }
}

impl Drop for OwnedController {
    fn drop(&mut self) {
        // SAFETY: it is alive, and nobody uses it after this.
        unsafe { (self.calls.destroy)(self.pointer.as_ptr()) }
    }
}
