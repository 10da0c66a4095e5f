//! Keys: that of this side, and those of peers as texts.

use std::ffi::{CString, c_char};
use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;

use farhaul::security::KeyPair;
use farhaul_transfer::internal::keys::identity;

use crate::argument;
use crate::border::{border_of, give};
use crate::error::{FarhaulError, text};
use crate::fault::Fault;
use crate::fork::leave;
use crate::result::FarhaulResult;

/// The private key of a side. It never changes, and any number of threads and options may use it.
pub struct FarhaulKey {
    pub(crate) pair: KeyPair,
    public: CString,
}

impl FarhaulKey {
    fn of(pair: KeyPair) -> Self {
        let public = text(&pair.public().to_string());
        Self { pair, public }
    }
}

/// Makes a new key, which lives in memory alone.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_key_generate(
    out: Option<&mut MaybeUninit<*mut FarhaulKey>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    give(out, error, || Ok(FarhaulKey::of(KeyPair::generate()?)))
}

/// Reads a private key from a file of OpenSSH or PEM: Ed25519 without a passphrase, as `farhaul key` makes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_key_load(
    path: *const c_char,
    out: Option<&mut MaybeUninit<*mut FarhaulKey>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    give(out, error, || {
        // SAFETY: the caller gives texts as documented.
        let path = Path::new(unsafe { argument::path(path, "path") }?);
        let missing = || Fault::new(FarhaulResult::NotFound, format!("there is no key in {}", path.display()));
        fs::metadata(path).map_err(|_| missing())?;
        Ok(FarhaulKey::of(identity::existing(Some(path)).map_err(farhaul_transfer::Error::from)?.ok_or_else(missing)?))
    })
}

/// The public key, as in a `.pub` file of OpenSSH: `ssh-ed25519 AAAA…`. The text lives as long as the key. Null for no key.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_key_public(key: Option<&FarhaulKey>) -> *const c_char {
    border_of(std::ptr::null(), || key.map_or(std::ptr::null(), |key| key.public.as_ptr()))
}

/// Frees a key. Options that have it keep what they need.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_key_free(key: Option<Box<FarhaulKey>>) {
    leave(key);
}
