//! A list of the names that a copy is restricted to.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use farhaul_session::{Component, MAX_LISTED_BYTES, NameList, NameListBuilder, RelPath, escape};
use farhaul_transfer::internal::lists;

use crate::exit::Fault;

/// Most bytes of a list as it is read. Names may be written in a longer form than they have.
const MOST_READ: u64 = 4 * MAX_LISTED_BYTES as u64;

/// Which names of the source take part.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Trees")]
pub(crate) struct NamesOptions {
    /// Copy only the files and directories that this file names, one a line; -: from stdin
    ///
    /// The names are relative to the only source, and arrive at the same place below the target. Directories on the way are made.
    /// A directory among the names is copied with its contents by -r or -a. Empty lines, and those that begin with # or ;, are
    /// left out.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) files_from: Option<PathBuf>,
    /// Names in the list end with a NUL character, as `find -print0` writes them
    #[arg(short = '0', long, requires = "files_from", hide_short_help = true)]
    from0: bool,
}

impl NamesOptions {
    /// The list.
    pub(crate) fn names(&self) -> Result<Option<NameList>, Fault> {
        let Some(file) = &self.files_from else { return Ok(None) };
        let (shown, text) = match file.as_os_str() == "-" {
            true => ("stdin".to_owned(), read(io::stdin().lock())),
            false => (file.display().to_string(), fs::File::open(file).and_then(read)),
        };
        let text = text.map_err(|error| Fault::usage(format!("cannot read the names in {shown}: {error}")))?;
        let names = divided(&text, self.from0);
        let names = names.map_err(|error| Fault::usage(format!("cannot read the names in {shown}: {error}")))?;
        parsed(names, self.from0).map(Some).map_err(|(number, name, why)| {
            let what = if self.from0 { "name" } else { "line" };
            Fault::usage(format!("{what} {number} of {shown}, {}: {why}", escape(&name)))
        })
    }

    /// The file as it was named.
    pub(crate) fn shown(&self) -> Option<String> {
        self.files_from.as_deref().map(Path::display).map(|path| path.to_string())
    }
}

fn read(from: impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    match from.take(MOST_READ + 1).read_to_end(&mut text)? as u64 {
        ..=MOST_READ => Ok(text),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "it is longer than 64 MiB; divide it")),
    }
}

type Names<'a> = Box<dyn Iterator<Item = &'a [u8]> + 'a>;

/// The names in a text, as they are written.
fn divided(text: &[u8], from0: bool) -> Result<Names<'_>, lists::TextError> {
    Ok(if from0 { Box::new(text.split(|&byte| byte == 0)) } else { Box::new(lists::lines(text)?) })
}

/// The list of these names. An error has the number of the name, the name, and what is wrong with it.
fn parsed(names: Names<'_>, from0: bool) -> Result<NameList, (usize, Vec<u8>, String)> {
    let mut list = NameListBuilder::default();
    for (name, number) in names.zip(1..) {
        if name.is_empty() || !from0 && matches!(name[0], b'#' | b';') {
            continue;
        }
        let failed = |why: String| (number, name.to_vec(), why);
        let path = relative(name).map_err(failed)?;
        list.push(&path).map_err(|error| failed(error.to_string()))?;
    }
    Ok(list.build())
}

/// A name as a path below the source. `.` and doubled slashes change nothing.
fn relative(name: &[u8]) -> Result<RelPath, String> {
    if name[0] == b'/' {
        return Err("names are relative to the source; leave out the slash at the front".to_owned());
    }
    let mut path = RelPath::root();
    for part in name.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".") {
        if part == b".." {
            return Err("names with `..` could leave the source, and are refused".to_owned());
        }
        let part = Component::new(part).map_err(|error| error.to_string())?;
        path.push(part).map_err(|error| error.to_string())?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &[u8], from0: bool) -> Vec<String> {
        let list = parsed(divided(text, from0).unwrap(), from0).unwrap();
        list.names_within(&RelPath::root()).map(|name| name.to_string()).collect()
    }

    #[test]
    fn names_are_those_of_lines_and_of_find() {
        assert_eq!(names(b"b//x/\n\n# comment\n;too\r\n./a\r\n a b", false), [" a b", "a", "b/x"]);
        assert_eq!(names(b"./#a\0\0odd\nname\0end\r\0", true), ["#a", "end\\r", "odd\\nname"]);
        assert_eq!(parsed(divided(b".\n", false).unwrap(), false).unwrap().len(), 1, "the whole source");
        assert_eq!(names(b"\xef\xbb\xbfa\r\nb", false), ["a", "b"]);
        assert_eq!(names(b"\xef\xbb\xbfa\0b\r", true), ["b\\r", "\\u{feff}a"], "bytes are names");
    }

    #[test]
    fn names_outside_of_the_source_are_refused_with_their_line() {
        for (text, words) in [
            (&b"a\n/etc/passwd\n"[..], "relative to the source"),
            (b"\n../a", "could leave the source"),
            (b"#\na/../../b", "could leave the source"),
            (&[b"a\n", &[b'n'; 256][..]].concat(), "255 bytes"),
            (b"a\na\0b", "NUL"),
        ] {
            let (number, _, why) = parsed(divided(text, false).unwrap(), false).unwrap_err();
            assert!(number == 2 && why.contains(words), "{number} {why}");
        }
    }
}
