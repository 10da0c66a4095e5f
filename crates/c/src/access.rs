//! How the remote ends of copies and file services are reached.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::path::PathBuf;

use farhaul::Rate;
use farhaul_transfer::{Settings, Ssh};

use crate::argument::{self, millis};
use crate::border::{border_of, change};
use crate::error::FarhaulError;
use crate::fault::Fault;
use crate::fork::leave;
use crate::result::FarhaulResult;

/// How copies and file services reach the other host: keys, ssh, rates. A null pointer in its place is the default: the user's own
/// key, known hosts and ssh, as the command has them. One thread at a time changes it, and any number may use it.
#[derive(Clone, Default)]
pub struct FarhaulAccess {
    pub(crate) settings: Settings,
    pub(crate) ssh: Ssh,
}

/// New settings with the defaults. Null if the process was forked off a user of this library.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_access_new() -> Option<Box<FarhaulAccess>> {
    border_of(None, || Some(Box::default()))
}

/// Frees it. Copies and file services that were made with it keep what they need.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_access_free(access: Option<Box<FarhaulAccess>>) {
    leave(access);
}

/// Connections to a server (`udt://`) are neither encrypted nor authenticated.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_access_plain(
    access: Option<&mut FarhaulAccess>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(access, "access", error, |access| {
        access.settings.security.plain = true;
        Ok(())
    })
}

/// The file of this side's private key, in place of the user's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_access_key_file(
    access: Option<&mut FarhaulAccess>,
    path: *const c_char,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(access, "access", error, |access| {
        // SAFETY: the caller gives texts as documented.
        let path = PathBuf::from(unsafe { argument::path(path, "path") }?);
        access.settings.security.key = Some(path);
        Ok(())
    })
}

/// The fingerprint of the server's key, `SHA256:…`, in place of what the file of known hosts says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_access_host_key(
    access: Option<&mut FarhaulAccess>,
    fingerprint: *const c_char,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(access, "access", error, |access| {
        // SAFETY: the caller gives texts as documented.
        let fingerprint = unsafe { argument::words(fingerprint, "fingerprint") }?.to_owned();
        access.settings.security.host_key = Some(fingerprint);
        Ok(())
    })
}

/// The cap of the send rate in bits per second, which a sender there keeps as well. Above zero.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_access_set_max_rate(
    access: Option<&mut FarhaulAccess>,
    bits_per_second: u64,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(access, "access", error, |access| {
        if bits_per_second == 0 {
            return Err(Fault::invalid("a rate must be above zero"));
        }
        access.settings.rate = Some(Rate::from_bits_per_second(bits_per_second));
        Ok(())
    })
}

/// The silence of the peer that ends a connection (default 30 s), and the longest time of an attempt to connect (default 5 s), in
/// milliseconds. Above zero.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_access_set_timeouts(
    access: Option<&mut FarhaulAccess>,
    silence: u64,
    connecting: u64,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(access, "access", error, |access| {
        if silence == 0 || connecting == 0 {
            return Err(Fault::invalid("a time-out must be above zero"));
        }
        let settings = &mut access.settings;
        (settings.timeout, settings.connect_timeout) = (millis(silence), millis(connecting));
        Ok(())
    })
}

/// The program in place of `ssh`, with its first arguments: `count` texts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_access_ssh(
    access: Option<&mut FarhaulAccess>,
    words: *const *const c_char,
    count: usize,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(access, "access", error, |access| {
        // SAFETY: the caller gives the list as documented.
        let words = unsafe { argument::list(words, count, "words") }?;
        if words.is_empty() {
            return Err(Fault::invalid("the list has no program"));
        }
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| Fault::invalid("`words` is not UTF-8"));
        let words = words.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
        access.ssh.command = words;
        Ok(())
    })
}

/// The program `farhaul` on hosts that ssh reaches. Default: that on their `PATH`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_access_remote_program(
    access: Option<&mut FarhaulAccess>,
    path: *const c_char,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(access, "access", error, |access| {
        // SAFETY: the caller gives texts as documented.
        let path = unsafe { argument::words(path, "path") }?.to_owned();
        access.ssh.remote_path = Some(path);
        Ok(())
    })
}
