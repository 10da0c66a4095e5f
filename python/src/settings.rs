//! Keyword arguments of connections, as the options of the command line have them.

use std::path::PathBuf;

use farhaul::Rate;
use farhaul::security::{Cipher, PublicKey};
use farhaul::units::{ByteSize, Duration};
use farhaul_transfer::internal::keys::HostKeyPolicy;
use farhaul_transfer::internal::settings::SecuritySettings;
use farhaul_transfer::{Settings, Ssh};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::controller::controller;
use crate::error::usage;

/// Longest time that an argument may name: as long as the library takes.
const LONGEST: f64 = 365.0 * 86_400.0;

/// Keyword arguments that are left. Each is taken once; the rest is unknown.
pub(crate) struct Keywords<'py>(Bound<'py, PyDict>);

impl<'py> Keywords<'py> {
    /// Those of a call.
    pub(crate) fn of(py: Python<'py>, keywords: Option<&Bound<'py, PyDict>>) -> PyResult<Self> {
        Ok(Self(keywords.map_or_else(|| Ok(PyDict::new(py)), |keywords| keywords.copy())?))
    }

    /// Takes the argument of this name, unless it is missing or `None`.
    pub(crate) fn take<T>(&self, name: &str) -> PyResult<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
    {
        let Some(value) = self.0.get_item(name)? else { return Ok(None) };
        self.0.del_item(name)?;
        if value.is_none() {
            return Ok(None);
        }
        value.extract().map(Some).map_err(|error: <T as FromPyObject<'_, 'py>>::Error| {
            let (error, py): (PyErr, _) = (error.into(), self.0.py());
            let message = format!("argument '{name}': {}", error.value(py));
            if error.is_instance_of::<PyTypeError>(py) { PyTypeError::new_err(message) } else { usage(message) }
        })
    }

    /// Takes a flag.
    pub(crate) fn flag(&self, name: &str) -> PyResult<bool> {
        Ok(self.take(name)?.unwrap_or_default())
    }

    /// Takes a time in seconds.
    pub(crate) fn time(&self, name: &str) -> PyResult<Option<Duration>> {
        self.take(name)?.map(|seconds| time(name, seconds)).transpose()
    }

    /// Takes words that mean a value.
    pub(crate) fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(&self, name: &str) -> PyResult<Option<T>> {
        let text: Option<String> = self.take(name)?;
        text.map(|text| text.parse().map_err(|error| usage(format!("argument '{name}': {error}")))).transpose()
    }

    /// Nothing may be left.
    ///
    /// # Errors
    /// An argument is unknown.
    pub(crate) fn end(self, function: &str) -> PyResult<()> {
        match self.0.keys().iter().next() {
            Some(name) => {
                Err(PyTypeError::new_err(format!("{function}() got an unexpected keyword argument '{name}'")))
            }
            None => Ok(()),
        }
    }
}

/// A time in seconds.
pub(crate) fn time(name: &str, seconds: f64) -> PyResult<Duration> {
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|_| seconds <= LONGEST);
    time.ok_or_else(|| usage(format!("argument '{name}': {seconds} is no time in seconds up to a year")))
}

/// The longest wait of a call, from its argument `timeout`; `None` for ever.
pub(crate) fn limit(timeout: Option<f64>) -> PyResult<Option<Duration>> {
    timeout.map(|seconds| time("timeout", seconds)).transpose()
}

/// The settings of connections.
pub(crate) fn settings(keywords: &Keywords<'_>) -> PyResult<Settings> {
    let mut settings = Settings { security: security(keywords)?, ..Settings::default() };
    if let Some(protocol) = keywords.parsed("protocol")? {
        settings.protocol = protocol;
    }
    settings.controller =
        keywords.take::<Bound<'_, PyAny>>("controller")?.map(|value| controller(&value)).transpose()?;
    settings.background = keywords.flag("background")?;
    settings.rate = keywords.take::<RateArgument>("rate")?.map(|rate| rate.0);
    settings.mtu = keywords.take("mtu")?;
    settings.buffer = keywords.take::<SizeArgument>("buffer")?.map(|size| size.0);
    settings.remembers_paths = keywords.take("path_memory")?.unwrap_or(true);
    settings.timeout = keywords.time("timeout")?.unwrap_or(settings.timeout);
    settings.connect_timeout = keywords.time("connect_timeout")?.unwrap_or(settings.connect_timeout);
    Ok(settings)
}

fn security(keywords: &Keywords<'_>) -> PyResult<SecuritySettings> {
    Ok(SecuritySettings {
        plain: keywords.flag("plain")?,
        key: keywords.take("key")?,
        cipher: match keywords.take::<String>("cipher")?.as_deref() {
            None | Some("auto") => Cipher::Auto,
            Some("aes128") => Cipher::Aes128Gcm,
            Some("aes256") => Cipher::Aes256Gcm,
            Some("chacha20") => Cipher::ChaCha20Poly1305,
            Some(other) => return Err(unknown("cipher", other, "auto, aes128, aes256, chacha20")),
        },
        host_key: keywords.take::<String>("host_key")?.map(|key| fingerprint(&key)).transpose()?,
        host_key_policy: match keywords.take::<String>("host_key_policy")?.as_deref() {
            None | Some("strict") => HostKeyPolicy::Strict,
            Some("accept-new") => HostKeyPolicy::AcceptNew,
            Some(other) => return Err(unknown("host_key_policy", other, "strict, accept-new")),
        },
        authorized_keys: keywords.take("authorized_keys")?,
        any_client: keywords.flag("any_client")?,
    })
}

/// The fingerprint of a key that is given as such, or as the public key itself.
fn fingerprint(text: &str) -> PyResult<String> {
    if text.strip_prefix("SHA256:").is_some_and(|digest| digest.len() == 43) {
        return Ok(text.to_owned());
    }
    let key: PublicKey = text.parse().map_err(|error| {
        usage(format!(
            "argument 'host_key': '{text}' is neither a fingerprint, SHA256: and 43 characters, nor a key: {error}"
        ))
    })?;
    Ok(key.fingerprint())
}

/// The settings of ssh.
pub(crate) fn ssh(keywords: &Keywords<'_>) -> PyResult<Ssh> {
    let mut ssh = Ssh::default();
    if let Some(Words(words)) = keywords.take("ssh")? {
        ssh.command = words;
    }
    ssh.port = keywords.take("ssh_port")?;
    ssh.identity = keywords.take::<PathBuf>("ssh_identity")?;
    ssh.jump = keywords.take("ssh_jump")?;
    ssh.options = keywords.take("ssh_options")?.unwrap_or_default();
    ssh.remote_path = keywords.take("remote_path")?;
    ssh.port_range = keywords.take("port_range")?;
    ssh.install = keywords.take::<PathBuf>("install")?;
    ssh.no_fallback = keywords.flag("no_fallback")?;
    Ok(ssh)
}

/// The error of a word that is none of `known`.
pub(crate) fn unknown(name: &str, word: &str, known: &str) -> PyErr {
    usage(format!("argument '{name}': '{word}' is none of {known}"))
}

/// A rate: a number of bits per second, or words such as `500mbit`.
pub(crate) struct RateArgument(pub(crate) Rate);

impl<'py> FromPyObject<'_, 'py> for RateArgument {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bits) = value.extract::<u64>() {
            return Ok(Self(Rate::from_bits_per_second(bits)));
        }
        let text: String = value.extract()?;
        text.parse().map(Self).map_err(|error| usage(format!("{error}")))
    }
}

/// A size: a number of bytes, or words such as `64MiB`.
pub(crate) struct SizeArgument(pub(crate) ByteSize);

impl<'py> FromPyObject<'_, 'py> for SizeArgument {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = value.extract::<u64>() {
            return Ok(Self(ByteSize(bytes)));
        }
        let text: String = value.extract()?;
        text.parse().map(Self).map_err(|error| usage(format!("{error}")))
    }
}

/// A command: its words, or a line that is divided as a shell does.
struct Words(Vec<String>);

impl<'py> FromPyObject<'_, 'py> for Words {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if !value.is_instance_of::<PyString>() {
            return value.extract().map(Self);
        }
        let text: String = value.extract()?;
        let words = shlex::split(&text).filter(|words| !words.is_empty());
        words.map(Self).ok_or_else(|| usage(format!("'{text}' is no command")))
    }
}
