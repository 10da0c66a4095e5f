//! The options for ssh, and its command lines. Arguments are never put together to a shell command on this host.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Args;

use super::frames::{COPY_MARK, SHELL_MARK};
use crate::exit::Fault;

/// The words of a command. A type of its own, since clap takes a list for several values.
#[derive(Clone, Debug)]
struct Words(Vec<String>);

/// The way to a far host.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "SSH")]
pub(crate) struct SshOptions {
    /// Command that reaches the far host, with its options: 'ssh -p 2222'
    #[arg(long, env = "FARHAUL_SSH", value_name = "COMMAND", default_value = "ssh", value_parser = words)]
    ssh: Words,
    /// Port of the SSH server, as for scp
    #[arg(short = 'P', value_name = "PORT")]
    port: Option<u16>,
    /// Private key for ssh
    #[arg(short = 'i', value_name = "FILE")]
    identity: Option<PathBuf>,
    /// Jump hosts on the way, with commas
    #[arg(short = 'J', value_name = "HOST")]
    jump: Option<String>,
    /// Option for ssh, as in its configuration file
    #[arg(short = 'o', value_name = "NAME=VALUE")]
    option: Vec<String>,
    /// Program on the far host [default: the copy of --install, then farhaul on its PATH]
    #[arg(long, env = "FARHAUL_REMOTE_PATH", value_name = "PATH")]
    remote_path: Option<String>,
    /// UDP ports for the far program: 50000-50100 [default: any]
    #[arg(long, env = "FARHAUL_PORT_RANGE", value_name = "LOW-HIGH", value_parser = ports)]
    pub(crate) port_range: Option<(u16, u16)>,
    /// Settings that a copy needs, before those of the user. The first value wins (ssh_config(5)).
    #[arg(skip)]
    own: Vec<&'static str>,
    /// Whether the settings of the user name a command for every session.
    #[arg(skip)]
    other_command: bool,
}

/// Settings for sessions of a person, with the value that a copy needs: one command, whose stdin and stdout are this program, and
/// nothing beside it. An ssh takes one if its `-G` names one of the keywords: older ones, and other programs, refuse settings
/// that they do not know. A terminal is refused by `-T`, which every ssh knows.
const OWN: [(&[&str], &str); 7] = [
    // It is printed if it is set, and exists in every version with the other keyword.
    (&["remotecommand", "sessiontype"], "RemoteCommand=none"),
    (&["clearallforwardings"], "ClearAllForwardings=yes"),
    (&["permitlocalcommand"], "PermitLocalCommand=no"),
    (&["sessiontype"], "SessionType=default"),
    (&["stdinnull"], "StdinNull=no"),
    (&["forkafterauthentication"], "ForkAfterAuthentication=no"),
    (&["forwardx11"], "ForwardX11=no"),
];
/// The first of them, without which ssh refuses any command.
const NO_OTHER_COMMAND: &str = OWN[0].1;
/// The setting of an ssh that ends with the copy, and would take other sessions of the user with it if it shared its connection.
const PRIVATE: &str = "ControlMaster=no";

/// Options of copies over SSH.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "SSH")]
pub(crate) struct SshCopyOptions {
    #[command(flatten)]
    pub(crate) way: SshOptions,
    /// If the far host lacks the program of this version, copy this one into the cache folder of the user there
    #[arg(long)]
    pub(crate) install: bool,
    /// Fail if UDP is blocked, instead of copying through the SSH connection
    #[arg(long)]
    pub(crate) no_fallback: bool,
    /// Go on when ssh ends in the middle of the copy; needs UDP
    ///
    /// Without it, the end of ssh ends the copy on both hosts. The far program ends with the copy in any case, or if it has heard
    /// nothing for --timeout.
    #[arg(long)]
    pub(crate) detach: bool,
}

impl SshOptions {
    /// The place of the copy of --install, for a shell. Versions before 1.0 differ in what they say, so each has a file of its own.
    pub(super) const INSTALLED: &str =
        concat!("${XDG_CACHE_HOME:-$HOME/.cache}/farhaul/bin/farhaul-", env!("CARGO_PKG_VERSION"));

    /// Ssh to `host` with this command there, or with none.
    pub(super) fn command(&self, host: &str, remote: Option<&str>) -> Result<Command, Fault> {
        self.with(&[], host, remote)
    }

    /// The same, for a host with these settings of ssh. An ssh that would share its connection, and ends with it, shares it no more.
    /// The connection of another one is used all the same.
    pub(crate) fn after(&self, settings: &str) -> Self {
        let value = |key: &str| setting(settings, key).unwrap_or("no");
        let is_private =
            !matches!(value("controlmaster"), "no" | "false") && matches!(value("controlpersist"), "no" | "false");
        let known = OWN.iter().filter(|(keywords, _)| keywords.iter().any(|key| has_setting(settings, key)));
        let own = is_private.then_some(PRIVATE).into_iter().chain(known.map(|(_, option)| *option)).collect();
        Self { own, other_command: setting(settings, "remotecommand").is_some(), ..self.clone() }
    }

    /// Ssh that prints its settings for `host`, and connects nowhere.
    pub(crate) fn settings(&self, host: &str) -> Result<Command, Fault> {
        self.with(&["-G"], host, None)
    }

    /// The command to try by hand: the same ssh, with a command that does nothing.
    pub(crate) fn trial(&self, host: &str) -> String {
        let own = self.other_command.then_some(NO_OTHER_COMMAND).into_iter().collect();
        let words = Self { own, ..self.clone() }.with(&[], host, Some("true")).map(|command| {
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            // These two make no difference to a person who types it.
            words
                .filter(|word| *word != "-T" && *word != "--")
                .map(|word| word.to_string_lossy().into_owned())
                .collect::<Vec<_>>()
        });
        let quoted = words.ok().and_then(|words| shlex::try_join(words.iter().map(String::as_str)).ok());
        quoted.unwrap_or_else(|| format!("ssh {host} true"))
    }

    fn with(&self, first: &[&str], host: &str, remote: Option<&str>) -> Result<Command, Fault> {
        let (program, its) = self.ssh.0.split_first().ok_or_else(|| Fault::usage("--ssh is empty"))?;
        let mut command = Command::new(program);
        command.args(its).args(first).arg("-T");
        self.own.iter().for_each(|setting| {
            command.args(["-o", *setting]);
        });
        let mut option = |name: &str, value: Option<OsString>| {
            if let Some(value) = value {
                command.arg(name).arg(value);
            }
        };
        option("-p", self.port.map(|port| port.to_string().into()));
        option("-i", self.identity.clone().map(Into::into));
        option("-J", self.jump.clone().map(Into::into));
        self.option.iter().for_each(|each| option("-o", Some(each.into())));
        command.arg("--").arg(host).args(remote).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    /// The command that starts the program on the far host. Every login shell understands it. The shell says first that it runs, and
    /// whether it takes the copy of `--install`.
    pub(super) fn bootstrap(&self) -> String {
        let say = |mark: &str| format!("printf \"\\001{}\\n\"", mark.trim_matches(['\x01', '\n']));
        let (shell, copy) = (say(SHELL_MARK), say(COPY_MARK));
        match &self.remote_path {
            Some(path) => format!("sh -c '{shell}; exec \"$1\" bootstrap' sh {}", quoted(path)),
            None => format!(
                "sh -c 'p=\"{}\"; if test -x \"$p\"; then {copy}; else p=farhaul; fi; {shell}; exec \"$p\" bootstrap'",
                Self::INSTALLED
            ),
        }
    }

    /// The place of the program there, in words.
    pub(super) fn program(&self) -> String {
        self.remote_path.clone().unwrap_or_else(|| "farhaul".to_owned())
    }

    /// Whether the user named the program there.
    pub(crate) const fn names_program(&self) -> bool {
        self.remote_path.is_some()
    }
}

/// The value of a setting, as `ssh -G` prints them.
pub(crate) fn setting<'a>(settings: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = settings.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(name, _)| *name == key).map(|(_, value)| value.trim()).filter(|value| *value != "none")
}

/// Whether `ssh -G` prints the setting, whatever its value.
fn has_setting(settings: &str, key: &str) -> bool {
    settings.lines().any(|line| line.split_once(' ').is_some_and(|(name, _)| name == key))
}

/// A path for a shell. A tilde at its beginning keeps its meaning.
fn quoted(path: &str) -> String {
    let (home, rest) = path.strip_prefix("~/").map_or(("", path), |rest| ("~/", rest));
    format!("{home}'{}'", rest.replace('\'', "'\\''"))
}

/// Divides a command into words, as a shell does.
fn words(text: &str) -> Result<Words, String> {
    let words = shlex::split(text).ok_or_else(|| format!("a quote in {text} does not end"))?;
    if words.is_empty() { Err("it is empty".to_owned()) } else { Ok(Words(words)) }
}

fn ports(text: &str) -> Result<(u16, u16), String> {
    let both = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| text.trim().parse::<u16>().ok().filter(|&port| port > 0);
    match port(both.0).zip(port(both.1)) {
        Some((low, high)) if low <= high => Ok((low, high)),
        _ => Err(format!("'{text}' is no range of ports; write 50000-50100")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        ssh: SshOptions,
    }

    fn options(arguments: &[&str]) -> SshOptions {
        Only::try_parse_from(["x"].iter().chain(arguments)).map_err(|error| error.to_string()).unwrap().ssh
    }

    fn line(command: &Command) -> Vec<String> {
        let all = std::iter::once(command.get_program()).chain(command.get_args());
        all.map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_options_of_scp_reach_ssh_as_words_of_their_own() {
        let options = options(&["--ssh", "ssh -F 'my config'", "-P", "22", "-i", "a key", "-J", "jump", "-o", "A=b"]);
        assert_eq!(
            line(&options.command("me@far", Some("run it")).unwrap()),
            [
                "ssh",
                "-F",
                "my config",
                "-T",
                "-p",
                "22",
                "-i",
                "a key",
                "-J",
                "jump",
                "-o",
                "A=b",
                "--",
                "me@far",
                "run it"
            ]
        );
        assert_eq!(line(&options.settings("far").unwrap())[3], "-G");
        assert_eq!(
            options.trial("me@far"),
            "ssh -F 'my config' -p 22 -i 'a key' -J jump -o 'A=b' me@far true",
            "what a person types to see the same failure"
        );
    }

    #[test]
    fn ssh_becomes_no_master_that_would_die_with_the_copy() {
        let words = |settings| line(&options(&["-o", "A=b"]).after(settings).command("far", None).unwrap()).join(" ");
        for settings in ["controlmaster auto\ncontrolpersist no\n", "controlmaster true\n", "controlmaster autoask\n"] {
            assert_eq!(words(settings), "ssh -T -o ControlMaster=no -o A=b -- far", "{settings}");
        }
        for settings in [
            "",
            "controlmaster false\n",
            "controlmaster auto\ncontrolpersist yes\n",
            "controlmaster yes\ncontrolpersist 600\n",
        ] {
            assert_eq!(words(settings), "ssh -T -o A=b -- far", "{settings}");
        }
        let private = options(&[]).after("controlmaster auto\n");
        assert_eq!(private.trial("far"), "ssh far true");
    }

    #[test]
    fn settings_for_sessions_of_a_person_are_overruled_where_ssh_knows_them() {
        let words = |settings| line(&options(&["-o", "A=b"]).after(settings).command("far", None).unwrap()).join(" ");
        let new = "clearallforwardings no\npermitlocalcommand yes\nsessiontype none\nstdinnull yes\nforkafterauthentication no\nforwardx11 yes\n";
        assert_eq!(
            words(new),
            "ssh -T -o RemoteCommand=none -o ClearAllForwardings=yes -o PermitLocalCommand=no -o SessionType=default -o StdinNull=no -o \
             ForkAfterAuthentication=no -o ForwardX11=no -o A=b -- far"
        );
        let old = "clearallforwardings no\npermitlocalcommand no\n";
        assert_eq!(words(old), "ssh -T -o ClearAllForwardings=yes -o PermitLocalCommand=no -o A=b -- far");
        assert_eq!(words("remotecommand tmux attach\n"), "ssh -T -o RemoteCommand=none -o A=b -- far");
        assert_eq!(words(""), "ssh -T -o A=b -- far", "a program that is no OpenSSH");
        let person = options(&[]).after("sessiontype default\nremotecommand tmux\n");
        assert_eq!(
            person.trial("far"),
            "ssh -o 'RemoteCommand=none' far true",
            "or the trial fails for another reason"
        );
    }

    #[test]
    fn a_path_of_the_far_program_is_one_word_for_its_shell() {
        let of = |path| options(&["--remote-path", path]).bootstrap();
        assert!(of("/opt/f x/farhaul").ends_with("exec \"$1\" bootstrap' sh '/opt/f x/farhaul'"));
        assert!(of("~/it's").ends_with(" sh ~/'it'\\''s'"));
        assert!(options(&[]).bootstrap().contains("else p=farhaul;"));
    }

    #[test]
    fn ranges_of_ports_are_read() {
        assert_eq!((ports("50000-50100"), ports("7")), (Ok((50_000, 50_100)), Ok((7, 7))));
        assert!(["", "0", "9-8", "1-70000", "a-b"].iter().all(|text| ports(text).is_err()));
    }
}
