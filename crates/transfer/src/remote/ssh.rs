//! How ssh reaches a host, and its command lines. Arguments are never put together to a shell command on this host.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::frames::{COPY_MARK, SHELL_MARK};
use crate::error::Error;

/// How ssh reaches remote hosts, and what it starts there.
#[derive(Clone, Debug)]
pub struct Ssh {
    /// The program and its first arguments.
    pub command: Vec<String>,
    /// Port of the SSH server.
    pub port: Option<u16>,
    /// Private key for ssh.
    pub identity: Option<PathBuf>,
    /// Jump hosts on the way, with commas.
    pub jump: Option<String>,
    /// Options for ssh, as in its configuration file: `NAME=VALUE`.
    pub options: Vec<String>,
    /// Program on the remote host; `None` for the installed copy, or `farhaul` on its `PATH`.
    pub remote_path: Option<String>,
    /// First and last UDP port for the program there; `None` for any.
    pub port_range: Option<(u16, u16)>,
    /// A `farhaul` program of this version for remote hosts that lack it. It is copied into the cache folder of the user there.
    pub install: Option<PathBuf>,
    /// Whether a copy fails if UDP is blocked, instead of going through the SSH connection.
    pub no_fallback: bool,
    /// Whether a copy goes on when ssh ends in the middle of it. It needs UDP.
    pub detach: bool,
    /// Settings that a copy needs, before those of the user. The first value wins (ssh_config(5)).
    own: Vec<&'static str>,
    /// Whether the settings of the user name a command for every session.
    other_command: bool,
    /// Whether the program there may run commands.
    runs_commands: bool,
}

impl Default for Ssh {
    /// `ssh` with the settings of its configuration files.
    fn default() -> Self {
        Self {
            command: vec!["ssh".to_owned()],
            port: None,
            identity: None,
            jump: None,
            options: Vec::new(),
            remote_path: None,
            port_range: None,
            install: None,
            no_fallback: false,
            detach: false,
            own: Vec::new(),
            other_command: false,
            runs_commands: false,
        }
    }
}

/// The word of a remote program that may run commands. A key or an account whose command is fixed lacks it, also if ssh asks for none.
pub const RUNS_COMMANDS: &str = "--commands";

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

impl Ssh {
    /// The place of the copy of --install, for a shell. Versions before 1.0 differ in what they say, so each has a file of its own.
    pub(super) const INSTALLED: &str =
        concat!("${XDG_CACHE_HOME:-$HOME/.cache}/farhaul/bin/farhaul-", env!("CARGO_PKG_VERSION"));

    /// Ssh to `host` with this command there, or with none.
    pub(super) fn command(&self, host: &str, remote: Option<&str>) -> Result<Command, Error> {
        self.with(&[], host, remote)
    }

    /// The same, for a host with these settings of ssh. An ssh that would share its connection, and ends with it, shares it no more.
    /// The connection of another one is used all the same.
    pub fn after(&self, settings: &str) -> Self {
        let value = |key: &str| setting(settings, key).unwrap_or("no");
        let is_private =
            !matches!(value("controlmaster"), "no" | "false") && matches!(value("controlpersist"), "no" | "false");
        let known = OWN.iter().filter(|(keywords, _)| keywords.iter().any(|key| has_setting(settings, key)));
        let own = is_private.then_some(PRIVATE).into_iter().chain(known.map(|(_, option)| *option)).collect();
        Self { own, other_command: setting(settings, "remotecommand").is_some(), ..self.clone() }
    }

    /// Ssh that prints its settings for `host`, and connects nowhere.
    pub fn settings(&self, host: &str) -> Result<Command, Error> {
        self.with(&["-G"], host, None)
    }

    /// The command to try by hand: the same ssh, with a command that does nothing.
    pub fn trial(&self, host: &str) -> String {
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

    fn with(&self, first: &[&str], host: &str, remote: Option<&str>) -> Result<Command, Error> {
        let (program, its) = self.command.split_first().ok_or_else(|| Error::usage("‹ssh› is empty"))?;
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
        self.options.iter().for_each(|each| option("-o", Some(each.into())));
        command.arg("--").arg(host).args(remote).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    /// The same for a program there that may run commands.
    pub(crate) fn for_commands(self) -> Self {
        Self { runs_commands: true, ..self }
    }

    /// The command that starts the program on the remote host. Every login shell understands it. The shell says first that it runs, and
    /// whether it takes the copy of `--install`.
    pub(super) fn bootstrap(&self) -> String {
        let say = |mark: &str| format!("printf \"\\001{}\\n\"", mark.trim_matches(['\x01', '\n']));
        let (shell, copy) = (say(SHELL_MARK), say(COPY_MARK));
        let verb = if self.runs_commands { format!("bootstrap {RUNS_COMMANDS}") } else { "bootstrap".to_owned() };
        match &self.remote_path {
            Some(path) => format!("sh -c '{shell}; exec \"$1\" {verb}' sh {}", quoted(path)),
            None => format!(
                "sh -c 'p=\"{}\"; if test -x \"$p\"; then {copy}; else p=farhaul; fi; {shell}; exec \"$p\" {verb}'",
                Self::INSTALLED
            ),
        }
    }

    /// The place of the program there, in words.
    pub(super) fn program(&self) -> String {
        self.remote_path.clone().unwrap_or_else(|| "farhaul".to_owned())
    }

    /// Whether the user named the program there.
    pub const fn names_program(&self) -> bool {
        self.remote_path.is_some()
    }
}

/// The value of a setting, as `ssh -G` prints them.
pub fn setting<'a>(settings: &'a str, key: &str) -> Option<&'a str> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn with_option(option: &str) -> Ssh {
        Ssh { options: vec![option.to_owned()], ..Ssh::default() }
    }

    fn line(command: &Command) -> Vec<String> {
        let all = std::iter::once(command.get_program()).chain(command.get_args());
        all.map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_options_of_scp_reach_ssh_as_words_of_their_own() {
        let options = Ssh {
            command: ["ssh", "-F", "my config"].map(ToOwned::to_owned).to_vec(),
            port: Some(22),
            identity: Some("a key".into()),
            jump: Some("jump".to_owned()),
            ..with_option("A=b")
        };
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
        let words = |settings| line(&with_option("A=b").after(settings).command("far", None).unwrap()).join(" ");
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
        let private = Ssh::default().after("controlmaster auto\n");
        assert_eq!(private.trial("far"), "ssh far true");
    }

    #[test]
    fn settings_for_sessions_of_a_person_are_overruled_where_ssh_knows_them() {
        let words = |settings| line(&with_option("A=b").after(settings).command("far", None).unwrap()).join(" ");
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
        let person = Ssh::default().after("sessiontype default\nremotecommand tmux\n");
        assert_eq!(
            person.trial("far"),
            "ssh -o 'RemoteCommand=none' far true",
            "or the trial fails for another reason"
        );
    }

    #[test]
    fn a_path_of_the_remote_program_is_one_word_for_its_shell() {
        let of = |path: &str| Ssh { remote_path: Some(path.to_owned()), ..Ssh::default() }.bootstrap();
        assert!(of("/opt/f x/farhaul").ends_with("exec \"$1\" bootstrap' sh '/opt/f x/farhaul'"));
        assert!(of("~/it's").ends_with(" sh ~/'it'\\''s'"));
        assert!(Ssh::default().bootstrap().contains("else p=farhaul;"));
        assert!(Ssh::default().bootstrap().ends_with("bootstrap'"), "no copy may run commands");
        assert!(Ssh::default().for_commands().bootstrap().ends_with("bootstrap --commands'"));
    }
}
