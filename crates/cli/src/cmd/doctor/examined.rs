//! What the parts of an examination know about this user.

use std::path::Path;

use clap::Command;

use super::interface::ETHERNET;
use crate::cmd::Context;
use crate::config;

/// What the parts of an examination know.
pub(super) struct Examined<'a> {
    pub(super) context: &'a Context,
    /// The command line, with the options that a settings file may have.
    pub(super) command: &'a Command,
    /// The file of this side's key, unless it is the usual one.
    pub(super) key: Option<&'a Path>,
    /// The size of this user's packets in bytes, headers included.
    pub(super) packet: u32,
    /// The option of this user's cipher; `None` for the automatic choice.
    pub(super) cipher: Option<String>,
}

impl<'a> Examined<'a> {
    pub(super) fn new(key: Option<&'a Path>, context: &'a Context, command: &'a Command) -> Self {
        let lasting = |option, variable| config::lasting(option, variable, command);
        Self {
            context,
            command,
            key,
            packet: lasting("mtu", "FARHAUL_MTU").and_then(|mtu| mtu.parse().ok()).unwrap_or(ETHERNET),
            cipher: lasting("cipher", "FARHAUL_CIPHER").filter(|cipher| cipher != "auto"),
        }
    }
}
