//! Manifests: the digests of files with their paths, in the format of `b3sum`.
//!
//! A line is the digest in hexadecimal digits, two blanks and the path. If the path has a backslash or a line break, the line
//! begins with a backslash, and the path has `\\` and `\n` for them. `b3sum --check` reads the same lines.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use farhaul_session::{CHUNK_LEN, ChunkDigests, ChunkHasher, Digest};

/// Bytes per read.
const BLOCK: usize = 1 << 20;

/// The line for a file.
pub fn line(path: &[u8], digest: &Digest) -> Vec<u8> {
    let mut line = Vec::new();
    let is_escaped = path.iter().any(|byte| matches!(byte, b'\\' | b'\n'));
    if is_escaped {
        line.push(b'\\');
    }
    line.extend_from_slice(digest.to_string().as_bytes());
    line.extend_from_slice(b"  ");
    for &byte in path {
        match byte {
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'\n' => line.extend_from_slice(b"\\n"),
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
    text.split(b'\n').zip(1u64..).filter(|(line, _)| !line.as_ref().is_ok_and(Vec::is_empty)).map(|(line, number)| {
        let line = line.map_err(|error| error.to_string())?;
        parse(&line).ok_or_else(|| format!("line {number} is not a digest, two blanks and a path"))
    })
}

fn parse(line: &[u8]) -> Option<Listed> {
    let (line, is_escaped) = match line.strip_prefix(b"\\") {
        Some(rest) => (rest, true),
        None => (line, false),
    };
    let (digits, path) = line.split_at_checked(64)?;
    let path = path.strip_prefix(b"  ")?;
    let mut digest = [0; 32];
    for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    let mut plain = Vec::new();
    let mut bytes = path.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(match byte {
            b'\\' if is_escaped => match bytes.next()? {
                b'\\' => b'\\',
                b'n' => b'\n',
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
    let (mut file, mut room, mut digests, mut size) = (File::open(path)?, vec![0; BLOCK], ChunkDigests::default(), 0);
    let mut hasher = ChunkHasher::at(0);
    loop {
        let len = match file.read(&mut room) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            len => len?,
        };
        if len == 0 {
            break;
        }
        size += len as u64;
        let mut rest = &room[..len];
        while !rest.is_empty() {
            let free = usize::try_from(CHUNK_LEN - hasher.len()).unwrap_or(BLOCK);
            let (part, behind) = rest.split_at(free.min(rest.len()));
            hasher.update(part);
            rest = behind;
            if hasher.len() == CHUNK_LEN {
                digests.put(&hasher);
                hasher.start(hasher.index() + 1);
            }
        }
    }
    if !hasher.is_empty() {
        digests.put(&hasher);
    }
    digests.root(size).ok_or_else(|| io::Error::other("its digest is incomplete"))
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
        for path in [&b"a b/c"[..], b"new\nline", b"back\\slash", b"\xff"] {
            let line = line(path, &digest);
            assert_eq!(line[0] == b'\\', path.iter().any(|byte| b"\\\n".contains(byte)));
            let listed = read(&line[..]).next().unwrap().unwrap();
            assert_eq!((listed.path.as_slice(), listed.digest), (path, digest));
        }
        for bad in [&b"0123  a"[..], b"zz  a", &[b"0".repeat(64).as_slice(), b" a"].concat()] {
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
