//! The programs of sshd's subsystems.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use farhaul_session::escape;

use crate::error::{Code, Error};

/// The settings of sshd, which not everybody may read.
const SETTINGS: &str = "/etc/ssh/sshd_config";
/// Part of sshd itself, which nobody else can start.
const INTERNAL: &[u8] = b"internal-sftp";
/// The server of SFTP.
const SFTP: &[u8] = b"sftp";
/// Its program in Debian, Fedora, Arch and SUSE, and the BSDs.
const SERVERS: [&str; 5] = [
    "/usr/lib/openssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
    "/usr/lib/ssh/sftp-server",
    "/usr/lib/misc/sftp-server",
    "/usr/libexec/sftp-server",
];

/// The command of a subsystem.
///
/// # Errors
/// There is none.
pub(super) fn command(name: &OsStr) -> Result<OsString, Error> {
    let settings = std::fs::read(SETTINGS).unwrap_or_default();
    found(name.as_bytes(), &settings, |program| Path::new(program).exists()).ok_or_else(|| {
        let shown = escape(name.as_bytes());
        Error::new(Code::FilesFailed, format!("the sshd here has no subsystem {shown} that another program can start"))
    })
}

fn found(name: &[u8], settings: &[u8], exists: impl Fn(&str) -> bool) -> Option<OsString> {
    let configured = settings.split(|&byte| byte == b'\n').find_map(|line| command_in(line, name));
    let options = match configured {
        // The settings may be unreadable.
        None if name == SFTP => &[],
        // Sshd takes no other word that begins like this one.
        Some(command) => match command.strip_prefix(INTERNAL) {
            Some(options) => options,
            None => return Some(OsStr::from_bytes(command).to_owned()),
        },
        None => return None,
    };
    let server = SERVERS.iter().find(|server| exists(server))?;
    // It takes the same options.
    Some(OsString::from_vec([server.as_bytes(), options].concat()))
}

/// The command in a line `Subsystem NAME COMMAND` (sshd_config(5)): the keyword in any case, and words that may be quoted.
fn command_in<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (keyword, rest) = word(line)?;
    if !keyword.eq_ignore_ascii_case(b"subsystem") {
        return None;
    }
    let (its_name, command) = word(rest)?;
    let command = command.trim_ascii();
    let is_it = its_name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")).unwrap_or(its_name) == name;
    (is_it && !command.is_empty()).then_some(command)
}

/// The first word of a line, and the rest.
fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii_start();
    let end = line.iter().position(|&byte| byte.is_ascii_whitespace() || byte == b'=').unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    let rest = rest.trim_ascii_start();
    (!word.is_empty()).then(|| (word, rest.strip_prefix(b"=").unwrap_or(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str, settings: &str, exists: impl Fn(&str) -> bool) -> Option<String> {
        found(name.as_bytes(), settings.as_bytes(), exists).map(|command| command.into_string().unwrap())
    }

    #[test]
    fn a_subsystem_is_that_of_sshd() {
        for (settings, command) in [
            ("Port 22\nSubsystem\tsftp\t/opt/sftp-server -l INFO\n", Some("/opt/sftp-server -l INFO")),
            ("subsystem \"sftp\" '/my dir/server'", Some("'/my dir/server'")),
            ("Subsystem=sftp /a\nSubsystem sftp /b", Some("/a")),
            ("# Subsystem sftp /opt/x\nSubsystem netconf /n", Some(SERVERS[1])),
            ("Subsystem sftp internal-sftp -l INFO", Some("/usr/libexec/openssh/sftp-server -l INFO")),
            ("Subsystem sftp internal-sftp", Some(SERVERS[1])),
            ("Subsystem sftp", Some(SERVERS[1])),
            ("", Some(SERVERS[1])),
        ] {
            assert_eq!(text("sftp", settings, |server| server == SERVERS[1]).as_deref(), command, "{settings}");
        }
        assert_eq!(text("netconf", "Subsystem netconf /n", |_| false).as_deref(), Some("/n"));
        for (name, settings) in [("netconf", ""), ("sftp", "Subsystem sftp internal-sftp"), ("", "Subsystem")] {
            assert_eq!(text(name, settings, |_| false), None, "{settings}");
        }
    }
}
