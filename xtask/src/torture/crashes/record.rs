//! The calls of a program that change files, from the output of strace.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// The calls that are recorded.
pub(super) const CALLS: &str = "openat,pwrite64,pwritev,write,writev,ftruncate,fallocate,copy_file_range,fsync,fdatasync,syncfs,\
                                renameat2,renameat,rename,linkat,unlinkat,mkdirat";

/// A call that succeeded.
#[derive(Debug)]
pub(super) struct Call {
    /// Seconds of the system's clock.
    pub(super) begin: f64,
    pub(super) end: f64,
    pub(super) what: What,
}

/// Paths are absolute, and those of handles are the present ones.
#[derive(Debug)]
pub(super) enum What {
    Create(String),
    /// To a file with this name. Without an offset, at its end.
    Write(String, Option<u64>, Vec<u8>),
    Truncate(String, u64),
    Rename(String, String),
    Exchange(String, String),
    Unlink(String),
    MakeDirectory(String),
    /// A file or a directory.
    Sync(String),
    SyncAll,
}

impl Call {
    /// Whether it concerns this folder or something below it.
    pub(super) fn is_below(&self, folder: &str) -> bool {
        match &self.what {
            What::Create(path)
            | What::Write(path, ..)
            | What::Truncate(path, _)
            | What::Rename(path, _)
            | What::Exchange(path, _)
            | What::Unlink(path)
            | What::MakeDirectory(path)
            | What::Sync(path) => Path::new(path).starts_with(folder),
            What::SyncAll => true,
        }
    }
}

/// Reads the files of `strace -ff -ttt -T -y -x`, in the order of the calls.
pub(super) fn read(folder: &Path, prefix: &str) -> Result<Vec<Call>> {
    let mut calls = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with(prefix) {
            for line in std::fs::read_to_string(&path)?.lines().filter(|line| line.ends_with('>')) {
                calls.extend(call(line).with_context(|| line.chars().take(300).collect::<String>())?);
            }
        }
    }
    calls.sort_by(|a: &Call, b| a.begin.total_cmp(&b.begin));
    Ok(calls)
}

/// The call of a line such as `1795.5 fsync(13</to/a>) = 0 <0.0007>`. `None` if it failed or changes no file.
fn call(line: &str) -> Result<Option<Call>> {
    let (begin, rest) = line.split_once(' ').context("a time")?;
    let begin: f64 = begin.parse()?;
    let (rest, took) = rest.rsplit_once(" <").context("a duration")?;
    let end = begin + took.trim_end_matches('>').parse::<f64>()?;
    let (call, result) = rest.rsplit_once(" = ").context("a result")?;
    if result.starts_with('-') {
        return Ok(None);
    }
    let (name, arguments) = call.split_once('(').context("arguments")?;
    let arguments = split(arguments.trim_end().strip_suffix(')').context("an end of the arguments")?);
    let argument = |at: usize| arguments.get(at).map(String::as_str).context("an argument");
    let at =
        |place: usize| Ok::<_, anyhow::Error>(format!("{}/{}", handle(argument(place)?)?, text(argument(place + 1)?)?));
    let what = match name {
        "openat" if argument(2)?.contains("O_CREAT") => What::Create(handle(result)?),
        "openat" | "fallocate" => return Ok(None),
        "write" | "pwrite64" => {
            let Ok(file) = handle(argument(0)?) else { return Ok(None) };
            if !file.starts_with('/') {
                return Ok(None);
            }
            let mut data = bytes(argument(1)?)?;
            data.truncate(result.parse()?);
            ensure!(!argument(1)?.ends_with("..."), "strace cut the data");
            What::Write(file, arguments.get(3).map(|offset| offset.parse()).transpose()?, data)
        }
        "ftruncate" => What::Truncate(handle(argument(0)?)?, argument(1)?.parse()?),
        "fsync" | "fdatasync" => What::Sync(handle(argument(0)?)?),
        "syncfs" => What::SyncAll,
        "renameat2" if argument(4)?.contains("RENAME_EXCHANGE") => What::Exchange(at(0)?, at(2)?),
        "renameat2" | "renameat" => What::Rename(at(0)?, at(2)?),
        "rename" => What::Rename(absolute(argument(0)?)?, absolute(argument(1)?)?),
        "unlinkat" => What::Unlink(at(0)?),
        "mkdirat" => What::MakeDirectory(at(0)?),
        other => bail!("the model does not know {other}"),
    };
    Ok(Some(Call { begin, end, what }))
}

/// The arguments, without the commas between them.
fn split(arguments: &str) -> Vec<String> {
    let (mut all, mut now, mut is_quoted, mut is_escaped, mut depth) = (Vec::new(), String::new(), false, false, 0_u32);
    for letter in arguments.chars() {
        match letter {
            '"' if !is_escaped => is_quoted = !is_quoted,
            '{' | '[' | '<' if !is_quoted => depth += 1,
            '}' | ']' | '>' if !is_quoted => depth = depth.saturating_sub(1),
            ',' if !is_quoted && depth == 0 => {
                all.push(std::mem::take(&mut now).trim().to_owned());
                continue;
            }
            _ => {}
        }
        is_escaped = letter == '\\' && !is_escaped;
        now.push(letter);
    }
    all.push(now.trim().to_owned());
    all
}

/// The path behind a handle: `13</to/a>`.
fn handle(argument: &str) -> Result<String> {
    let (_, path) = argument.split_once('<').context("a handle has a path")?;
    Ok(path.trim_end_matches('>').to_owned())
}

/// A path that depends on no working directory, which the model does not follow.
fn absolute(argument: &str) -> Result<String> {
    let path = text(argument)?;
    ensure!(path.starts_with('/'), "the model does not know where {path} is");
    Ok(path)
}

fn text(argument: &str) -> Result<String> {
    Ok(String::from_utf8(bytes(argument)?)?)
}

/// The bytes of a string with escapes as in C.
fn bytes(argument: &str) -> Result<Vec<u8>> {
    let quoted = argument.trim_end_matches("...");
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).context("a string")?.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(inner.len() / 3), 0);
    while let Some(&byte) = inner.get(at) {
        at += 1;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let kind = *inner.get(at).context("an escape")?;
        at += 1;
        out.push(match kind {
            b'x' => {
                let digits = std::str::from_utf8(inner.get(at..at + 2).context("two digits")?)?;
                at += 2;
                u8::from_str_radix(digits, 16)?
            }
            b'0'..=b'7' => {
                let len = inner[at - 1..].iter().take(3).take_while(|digit| (b'0'..=b'7').contains(digit)).count();
                let digits = std::str::from_utf8(&inner[at - 1..at - 1 + len])?;
                at += len - 1;
                u8::from_str_radix(digits, 8)?
            }
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 11,
            b'f' => 12,
            other => other,
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_becomes_a_call() {
        let line = r#"17.25 pwrite64(13</to/.b.fhpart>, "\x84,\" \12n", 5, 23258) = 5 <0.5>"#;
        let call = call(line).unwrap().unwrap();
        assert_eq!((call.begin, call.end), (17.25, 17.75));
        let What::Write(file, offset, data) = call.what else { panic!("{call:?}") };
        assert_eq!((&*file, offset, &*data), ("/to/.b.fhpart", Some(23_258), &b"\x84,\" \nn"[..5]));
    }

    #[test]
    fn failures_and_sockets_change_no_file() {
        assert!(call(r#"1.0 mkdirat(9</to>, "t", 0700) = -1 EEXIST (File exists) <0.1>"#).unwrap().is_none());
        assert!(call(r#"1.0 write(7<UDP:[127.0.0.1:1]>, "x", 1) = 1 <0.1>"#).unwrap().is_none());
        let exchanged = call(r#"1.0 renameat2(14</to>, ".b", 14</to>, "b", RENAME_EXCHANGE) = 0 <0.1>"#).unwrap();
        assert!(matches!(exchanged.unwrap().what, What::Exchange(from, to) if from == "/to/.b" && to == "/to/b"));
    }

    #[test]
    fn a_rename_without_handles_needs_absolute_paths() {
        let renamed = call(r#"1.0 rename("/run/1.begun", "/run/1.sock") = 0 <0.1>"#).unwrap().unwrap();
        assert!(matches!(&renamed.what, What::Rename(from, to) if from == "/run/1.begun" && to == "/run/1.sock"));
        assert!(!renamed.is_below("/to"));
        call(r#"1.0 rename("1.begun", "1.sock") = 0 <0.1>"#).unwrap_err();
    }
}
