//! The order of words in which ssh takes a command line: options before and behind the host, and then the command as it is.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::Command;

/// The name of the verb.
const VERB: &str = "rsh";

/// The same command line with all options of `rsh` in front of the host, and `--` between them. Other verbs keep theirs.
pub(crate) fn options_first(arguments: Vec<OsString>, command: &Command) -> Vec<OsString> {
    let is_rsh = arguments.get(1).is_some_and(|verb| verb == VERB);
    match command.find_subcommand(VERB).filter(|_| is_rsh) {
        Some(rsh) => ordered(&arguments, rsh),
        None => arguments,
    }
}

fn ordered(arguments: &[OsString], rsh: &Command) -> Vec<OsString> {
    let (mut ordered, mut words) = (arguments[..2].to_vec(), arguments[2..].iter());
    let mut host = None;
    while let Some(word) = words.next() {
        let bytes = word.as_bytes();
        let (is_end, is_option) = (bytes == b"--", bytes.len() > 1 && bytes[0] == b'-');
        match host {
            _ if is_option && !is_end => {
                ordered.push(word.clone());
                ordered.extend(words.clone().next().filter(|_| needs_value(word, rsh)).cloned());
                if needs_value(word, rsh) {
                    words.next();
                }
            }
            // Options may follow the host all the same (OpenSSH, ssh.c).
            None if is_end => host = words.next(),
            None => host = Some(word),
            Some(_) if is_end => break,
            Some(host) => return with_command(ordered, Some(host), [word].into_iter().chain(words)),
        }
    }
    with_command(ordered, host, words)
}

fn with_command<'a>(
    mut ordered: Vec<OsString>,
    host: Option<&'a OsString>,
    command: impl Iterator<Item = &'a OsString>,
) -> Vec<OsString> {
    if let Some(host) = host {
        ordered.extend([OsString::from("--"), host.clone()]);
        ordered.extend(command.cloned());
    }
    ordered
}

/// Whether the next word is the value of this option, or of the last one in a group of short ones.
fn needs_value(option: &OsStr, rsh: &Command) -> bool {
    let bytes = option.as_bytes();
    if let Some(long) = bytes.strip_prefix(b"--") {
        let known = rsh.get_arguments().find(|arg| arg.get_long().is_some_and(|name| name.as_bytes() == long));
        return known.is_some_and(|arg| arg.get_action().takes_values());
    }
    let takes_value = |byte: u8| {
        let known = rsh.get_arguments().find(|arg| arg.get_short() == Some(char::from(byte)));
        known.is_some_and(|arg| arg.get_action().takes_values())
    };
    // A value may be attached to its option.
    bytes[1..].iter().position(|&byte| takes_value(byte)).is_some_and(|at| at + 2 == bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;

    fn order(line: &str) -> String {
        let arguments = line.split(' ').map(OsString::from).collect();
        options_first(arguments, command()).join(OsStr::new(" ")).into_string().unwrap()
    }

    /// Command lines that rsync, sshfs, git, borg, scp and sftp make.
    #[test]
    fn the_command_begins_behind_the_host_and_its_options() {
        for (line, ordered) in [
            ("f rsh -l me far rsync --server -e.L . d", "f rsh -l me -- far rsync --server -e.L . d"),
            ("f rsh -x -a -oA=b -2 me@far -s sftp", "f rsh -x -a -oA=b -2 -s -- me@far sftp"),
            (
                "f rsh -o SendEnv=GIT_PROTOCOL -p 22 far git-upload-pack -x",
                "f rsh -o SendEnv=GIT_PROTOCOL -p 22 -- far git-upload-pack -x",
            ),
            ("f rsh -p22 far borg serve --umask=077", "f rsh -p22 -- far borg serve --umask=077"),
            ("f rsh -oA -l me -s -- far sftp", "f rsh -oA -l me -s -- far sftp"),
            ("f rsh far -p 22 -- -x y", "f rsh -p 22 -- far -x y"),
            ("f rsh far x -- y", "f rsh -- far x -- y"),
            ("f rsh -xap 22 far x", "f rsh -xap 22 -- far x"),
            ("f rsh -xp22 far x", "f rsh -xp22 -- far x"),
            ("f rsh -oa far x", "f rsh -oa -- far x"),
            (
                "f rsh --rate 1gbit far --rate=2gbit --no-fallback x --rate",
                "f rsh --rate 1gbit --rate=2gbit --no-fallback -- far x --rate",
            ),
            ("f rsh -T - x", "f rsh -T -- - x"),
            ("f rsh -p 22", "f rsh -p 22"),
            ("f rsh -p", "f rsh -p"),
            ("f rsh", "f rsh"),
            ("f copy -r far: --rate 1gbit x", "f copy -r far: --rate 1gbit x"),
        ] {
            assert_eq!(order(line), ordered, "{line}");
        }
    }

    #[test]
    fn the_rest_is_taken_as_it_is() {
        let line = order("f rsh -p 22 far -n a -n -- --rate -o");
        let matches = command().clone().try_get_matches_from(line.split(' ')).unwrap();
        let (_, rsh) = matches.subcommand().unwrap();
        let words: Vec<_> = rsh.get_raw("command").unwrap().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(words, ["a", "-n", "--", "--rate", "-o"]);
        assert!(rsh.get_flag("no_input"));
    }
}
