//! The demo's directory: made, filled, and removed at the end.

use std::fs::{self, DirBuilder, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use blake3::{Hash, Hasher};
use farhaul_units::{ByteSize, Rng};

use crate::exit::{Code, Fault};
use crate::interrupt::Interrupt;

/// Bytes that are written or hashed at a time.
const BLOCK: usize = 1 << 20;
/// Room that is left for others, in bytes.
const RESERVE: u64 = 64 << 20;

/// A directory that nobody else may enter.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Makes it; with room for a file of `size` and its copy, if that is known.
    pub(super) fn make(size: Option<ByteSize>) -> Result<Self, Fault> {
        let parent = std::env::temp_dir();
        let cannot = |error: io::Error| {
            Fault::new(
                Code::LocalIo,
                format!("cannot use {}: {error}; set TMPDIR to another directory", parent.display()),
            )
        };
        let free = rustix::fs::statvfs(&parent).map_err(|error| cannot(error.into()))?;
        let free = free.f_bavail.saturating_mul(free.f_frsize);
        let needed = size.map_or(0, |ByteSize(size)| size.saturating_mul(2)) + RESERVE;
        if free < needed {
            let (needed, free) = (ByteSize(needed), ByteSize(free));
            let message =
                format!("{} has {free} free and the demo needs {needed}: use --size, or set TMPDIR", parent.display());
            return Err(Fault::new(Code::DiskFull, message));
        }
        let path = parent.join(format!("farhaul-demo-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path).map_err(cannot)?;
        let scratch = Self(path);
        DirBuilder::new().create(scratch.inbox()).map_err(cannot)?;
        Ok(scratch)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The receiving side's directory.
    pub(super) fn inbox(&self) -> PathBuf {
        self.0.join("received")
    }

    /// Makes a file of random bytes; its digest.
    pub(super) fn make_file(&self, ByteSize(size): ByteSize, interrupt: &Interrupt) -> Result<(PathBuf, Hash), Fault> {
        let path = self.0.join("demo.bin");
        let cannot = |error: io::Error| Fault::new(Code::LocalIo, format!("cannot write {}: {error}", path.display()));
        let mut file = BufWriter::with_capacity(BLOCK, File::create_new(&path).map_err(cannot)?);
        let (mut rng, mut hasher) = (Rng::new(size), Hasher::new());
        let mut block = vec![0; BLOCK];
        let mut left = size;
        while left > 0 {
            if let Some(fault) = interrupt.fault() {
                return Err(fault);
            }
            block.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&rng.next_u64().to_le_bytes()));
            let len = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
            file.write_all(&block[..len]).map_err(cannot)?;
            hasher.update(&block[..len]);
            left -= len as u64;
        }
        file.flush().map_err(cannot)?;
        Ok((path, hasher.finalize()))
    }

    /// The digest of a file as it lies on the disk.
    pub(super) fn hash(&self, path: &Path) -> Result<Hash, Fault> {
        let cannot = |error: io::Error| super::unreadable(path, &error);
        let mut file = File::open(path).map_err(cannot)?;
        let mut hasher = Hasher::new();
        let mut block = vec![0; BLOCK];
        loop {
            match file.read(&mut block).map_err(cannot)? {
                0 => return Ok(hasher.finalize()),
                len => hasher.update(&block[..len]),
            };
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
