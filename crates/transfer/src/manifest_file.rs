//! Manifests: the digests of files with their paths, in the format of `b3sum`.
//!
//! A line is the digest in hexadecimal digits, two blanks and the path. If the path has a backslash, a line break or a carriage return,
//! the line begins with a backslash, and the path has `\\`, `\n` and `\r` for them. `b3sum --check` reads the same lines.

use std::fs::File;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use farhaul_keys::lists::{unmarked, without_end};
use farhaul_session::Digest;

/// The line for a file.
pub fn line(path: &[u8], digest: &Digest) -> Vec<u8> {
    let mut line = Vec::new();
    let is_escaped = path.iter().any(|byte| matches!(byte, b'\\' | b'\n' | b'\r'));
    if is_escaped {
        line.push(b'\\');
    }
    line.extend_from_slice(digest.to_string().as_bytes());
    line.extend_from_slice(b"  ");
    for &byte in path {
        match byte {
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            byte => line.push(byte),
        }
    }
    line.push(b'\n');
    line
}

/// One file of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its path, as the manifest has it.
    pub path: Vec<u8>,
    /// Its digest.
    pub digest: Digest,
}

/// Reads a manifest line by line.
///
/// # Errors
/// A line is not of this format, with its number.
pub fn read(text: impl BufRead) -> impl Iterator<Item = Result<Listed, String>> {
    text.split(b'\n').zip(1u64..).filter_map(|(line, number)| {
        let listed = || {
            let line = line.map_err(|error| error.to_string())?;
            let line = if number == 1 { unmarked(&line).map_err(|error| error.to_string())? } else { &line };
            let line = without_end(line);
            let wrong = || format!("line {number} is not a digest, two blanks and a path");
            if line.is_empty() { Ok(None) } else { parse(line).map(Some).ok_or_else(wrong) }
        };
        listed().transpose()
    })
}

fn parse(line: &[u8]) -> Option<Listed> {
    let (line, is_escaped) = match line.strip_prefix(b"\\") {
        Some(rest) => (rest, true),
        None => (line, false),
    };
    let (digits, path) = line.split_at_checked(64)?;
    let path = path.strip_prefix(b"  ")?;
    let digest = *blake3::Hash::from_hex(digits).ok()?.as_bytes();
    let mut plain = Vec::new();
    let mut bytes = path.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(match byte {
            b'\\' if is_escaped => match bytes.next()? {
                b'\\' => b'\\',
                b'n' => b'\n',
                b'r' => b'\r',
                _ => return None,
            },
            byte => byte,
        });
    }
    (!plain.is_empty()).then_some(Listed { path: plain, digest: Digest::from_bytes(digest) })
}

/// The digest of a file of this host.
///
/// # Errors
/// It cannot be read.
pub fn digest_of(path: &Path) -> io::Result<Digest> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(Digest::from_bytes(*hasher.finalize().as_bytes()))
}

/// The path of a listed file below `root`.
pub fn place(root: &Path, path: &[u8]) -> PathBuf {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    root.join(OsStr::from_bytes(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_b3sum_and_read_back() {
        let digest = Digest::of(b"x");
        for path in [&b"a b/c"[..], b"new\nline", b"back\\slash", b"\xff", b"Icon\r"] {
            let line = line(path, &digest);
            assert_eq!(line[0] == b'\\', path.iter().any(|byte| b"\\\n\r".contains(byte)));
            // As it is, and as an editor of Windows saves it.
            for line in [line.clone(), [b"\xef\xbb\xbf", &line[..line.len() - 1], b"\r\n\r\n"].concat()] {
                let listed: Vec<_> = read(&line[..]).map(Result::unwrap).collect();
                assert_eq!(listed, [Listed { path: path.to_vec(), digest }]);
            }
        }
        for bad in [&b"0123  a"[..], b"\xff\xfe0\0", b"zz  a", &[b"0".repeat(64).as_slice(), b" a"].concat()] {
            assert!(read(bad).next().unwrap().is_err());
        }
    }

    #[test]
    fn the_digest_of_a_file_is_that_of_its_bytes() {
        let path = std::env::temp_dir().join(format!("farhaul-manifest-{}", std::process::id()));
        for size in [0, 5, 1 << 20, (2 << 20) + 7] {
            let content: Vec<u8> = (0..size).map(|index: u32| (index / 77) as u8).collect();
            std::fs::write(&path, &content).unwrap();
            assert_eq!(digest_of(&path).unwrap(), Digest::of(&content));
        }
        std::fs::remove_file(&path).unwrap();
    }
}
