//! One finding: its state, its sentence, the command that fixes it.

use serde_json::{Map, Value, json};

use crate::exit::{Code, Fault, words};
use crate::output::human::{Style, plural};

/// Columns of the state and of the name, so that all sentences begin in one column.
const STATE_COLUMNS: usize = 9;
const ID_COLUMNS: usize = 17;
/// Columns in front of a sentence.
const INDENT: usize = STATE_COLUMNS + ID_COLUMNS;
/// Fewest columns of a sentence. A narrower terminal wraps it by itself.
const LEAST_COLUMNS: usize = 40;

/// What a finding means for transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FindingState {
    /// Nothing to do.
    Ok,
    /// Transfers work, and could be faster or easier.
    Advice,
    /// Transfers fail, or are much slower than their path.
    Problem,
}

impl FindingState {
    const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Advice => "advice",
            Self::Problem => "problem",
        }
    }
}

/// The host on which a command fixes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Here,
    There,
}

/// A finding about this machine or about a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Finding {
    pub(super) id: &'static str,
    pub(super) state: FindingState,
    pub(super) message: String,
    /// Commands, one a line. Several lines are alternatives.
    pub(super) fix: Option<String>,
    side: Side,
    figures: Map<String, Value>,
}

impl Finding {
    /// Something that is as it should be.
    pub(super) fn ok(id: &'static str, message: impl Into<String>) -> Self {
        Self { id, state: FindingState::Ok, message: message.into(), fix: None, side: Side::Here, figures: Map::new() }
    }

    /// Something that could be better.
    pub(super) fn advice(id: &'static str, message: impl Into<String>) -> Self {
        Self { state: FindingState::Advice, ..Self::ok(id, message) }
    }

    /// Something that is in the way of transfers.
    pub(super) fn problem(id: &'static str, message: impl Into<String>) -> Self {
        Self { state: FindingState::Problem, ..Self::ok(id, message) }
    }

    /// The same with the command that fixes it on this machine.
    #[must_use]
    pub(super) fn fix(self, command: impl Into<String>) -> Self {
        Self { fix: Some(command.into()), ..self }
    }

    /// The same with the command that fixes it on the other host.
    #[must_use]
    pub(super) fn fix_there(self, command: impl Into<String>) -> Self {
        Self { fix: Some(command.into()), side: Side::There, ..self }
    }

    /// Beside it, the fault of the program, with the same message.
    pub(super) fn and_fault(self, code: Code) -> (Self, Fault) {
        let fault = Fault::new(code, self.message.clone());
        (self, fault)
    }

    /// The same with a figure for scripts, whose name has its unit.
    #[must_use]
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.figures.insert(name.to_owned(), value.into());
        self
    }

    /// The record of `--json`.
    pub(super) fn record(&self) -> Value {
        let side = self.fix.as_ref().map(|_| match self.side {
            Side::Here => "here",
            Side::There => "there",
        });
        let mut record = json!({
            "event": "finding",
            "id": self.id,
            "state": self.state.name(),
            "message": words(&self.message),
            "fix": self.fix,
            "fix_side": side,
        });
        for (name, value) in &self.figures {
            record[name] = value.clone();
        }
        record
    }

    /// The lines for people. A sentence wraps in its column at the width of a terminal.
    pub(super) fn lines(&self, style: Style, columns: Option<usize>) -> String {
        let state = format!("{:STATE_COLUMNS$}", self.state.name());
        let state = match self.state {
            FindingState::Ok => style.green(&state),
            FindingState::Advice => style.yellow(&state),
            FindingState::Problem => style.red(&state),
        };
        let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(INDENT).max(LEAST_COLUMNS));
        let message = wrapped(&words(&self.message), room).join(&format!("\n{:INDENT$}", ""));
        let mut lines = format!("{state}{:ID_COLUMNS$}{message}\n", self.id);
        let place = if self.side == Side::There { "there" } else { "" };
        for (index, command) in self.fix.iter().flat_map(|fix| fix.lines()).enumerate() {
            let word = if index == 0 { place } else { "or" };
            lines.push_str(&format!("{:STATE_COLUMNS$}{word:>ID_COLUMNS$}$ {}\n", "", style.bold(command)));
        }
        lines
    }
}

/// A path as a shell takes it.
pub(super) fn quoted(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+~".contains(&byte);
    match !path.is_empty() && path.bytes().all(is_plain) {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

/// The words of `text` in lines of at most `room` columns.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a line from the beginning");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// The last line for people.
pub(super) fn summary(problems: u64, advice: u64) -> String {
    let findings = plural(problems + advice, "finding");
    match (problems, advice) {
        (0, 0) => "nothing to fix".to_owned(),
        (0, _) => format!("{findings} to fix, none of them a problem"),
        (1, _) => format!("{findings} to fix, 1 of them a problem"),
        _ => format!("{findings} to fix, {problems} of them problems"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_fix_its_side_and_the_figures() {
        let finding = Finding::problem("udp", "silent").fix_there("sudo ufw allow 9/udp").with("wait_us", 5);
        assert_eq!(
            finding.record(),
            json!({
                "event": "finding", "id": "udp", "state": "problem", "message": "silent",
                "fix": "sudo ufw allow 9/udp", "fix_side": "there", "wait_us": 5,
            })
        );
        assert_eq!(Finding::ok("udp", "").record()["fix_side"], Value::Null);
    }

    #[test]
    fn sentences_and_commands_stand_in_columns() {
        let style = Style::plain();
        assert_eq!(Finding::ok("clock", "tsc").lines(style, None), "ok       clock            tsc\n");
        assert_eq!(
            Finding::advice("udp", "silent").fix_there("a\nb").lines(style, None),
            "advice   udp              silent\n                     there$ a\n                        or$ b\n"
        );
    }

    #[test]
    fn a_long_sentence_stays_in_its_column() {
        let words = "word ".repeat(20);
        let lines = Finding::ok("clock", words.trim()).lines(Style::plain(), Some(80));
        assert!(
            lines.lines().all(|line| line.len() <= 80) && lines.lines().nth(1).unwrap().starts_with(&" ".repeat(26))
        );
        assert_eq!(lines.split_whitespace().filter(|word| *word == "word").count(), 20);
        assert_eq!(wrapped("", 9), [""]);
    }

    #[test]
    fn a_path_is_quoted_only_if_a_shell_would_split_it() {
        assert_eq!(quoted("/home/a/.config/key"), "/home/a/.config/key");
        assert_eq!(quoted("/my keys/it's"), r"'/my keys/it'\''s'");
    }

    #[test]
    fn the_summary_counts_and_knows_one_from_many() {
        for (problems, advice, words) in [
            (0, 0, "nothing to fix"),
            (0, 2, "2 findings to fix, none of them a problem"),
            (1, 0, "1 finding to fix, 1 of them a problem"),
            (2, 1, "3 findings to fix, 2 of them problems"),
        ] {
            assert_eq!(summary(problems, advice), words);
        }
    }
}
