//! Single files of protocols that carry neither digests nor trees.
//!
//! The rules are those of [`DiskStore`](super::DiskStore) and [`DiskSource`](super::DiskSource): a temporary name until
//! the file is complete, no links below a root, regular files only. Bytes may be written and read in any order.

use std::io;
use std::path::Path;
use std::sync::Arc;

use farhaul_session::{Chunk, Component, Ends, Entry, FailCode, Failure, RelPath};

use super::claims::Claims;
use super::directory::{Directory, now, stamp_now};
use super::failure::failure;
use super::partial::{Commitment, Partial};
use super::properties::TargetProperties;
use super::source_file::SourceFile;
use super::target::Target;
use super::temporary::{is_temporary, refuse_reserved};
use super::umask::umask;

/// Mode of a new file before the umask. The protocols carry none.
const MODE: u32 = 0o666;
/// Files of one list. A larger directory is listed in part.
const MOST_LISTED: usize = 100_000;

/// Where received files go: a directory, or one name in it.
#[derive(Debug)]
pub struct IncomingPlace {
    directory: Arc<Directory>,
    /// The name for a single file, in place of its own.
    name: Option<Component>,
    /// What has been received here so far.
    claims: Arc<Claims>,
}

impl IncomingPlace {
    /// The place that a user named. An existing directory takes files under their own names. So does a path that ends
    /// in a slash, or `is_directory`, and it must exist.
    ///
    /// # Errors
    /// The directory does not exist or may not be entered.
    pub fn at(path: &Path, is_directory: bool) -> io::Result<Self> {
        let is_directory = is_directory || path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/");
        match Directory::open_parent(path)? {
            Some((parent, name)) if !is_directory => {
                Ok(Self { directory: Arc::new(parent), name: Some(name), claims: Arc::default() })
            }
            _ => Ok(Self { directory: Arc::new(Directory::open(path)?), name: None, claims: Arc::default() }),
        }
    }

    /// Creates the temporary file for a file that its server calls `name`, of `size` bytes.
    ///
    /// # Errors
    /// The name is taken by something that is no regular file, the disk has no room, or the system refuses.
    pub fn begin(&self, name: &Component, size: u64) -> Result<IncomingFile, Failure> {
        let name = self.name.as_ref().unwrap_or(name);
        refuse_reserved(name)?;
        Target { directory: &self.directory, name }.check(&self.claims)?;
        let free = self.directory.free_space().map_err(|error| failure("ask for the free space", error))?;
        if size > free {
            return Err(Failure::new(FailCode::NoSpace, format!("{size} bytes are needed and {free} are free")));
        }
        let partial =
            Partial::begin(Arc::clone(&self.directory), name.clone(), (size, false), Arc::clone(&self.claims))?;
        Ok(IncomingFile { partial: Some(partial) })
    }
}

/// A file that is being received. Its drop removes it: no dialogue of these protocols could continue it.
#[derive(Debug)]
pub struct IncomingFile {
    /// `None` after the commit.
    partial: Option<Partial>,
}

impl IncomingFile {
    /// Writes bytes anywhere in the file.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        let Some(partial) = &self.partial else { return Err(FailCode::NotFound.into()) };
        partial.write_quietly(offset, bytes)
    }

    /// Makes the content survive a crash, and gives the file its name. Waits for the disk.
    ///
    /// # Errors
    /// One of these steps failed. The file is gone, and an earlier file of that name is unchanged.
    pub fn commit(mut self) -> Result<(), Failure> {
        let Some(partial) = self.partial.take() else { return Err(FailCode::NotFound.into()) };
        let directory = Arc::clone(&partial.directory);
        let properties = TargetProperties::plain(Some(MODE & !umask()), now());
        partial.commit(&Commitment {
            properties,
            keeps_permissions: false,
            syncs: true,
            patience: None,
            verify: None,
            ends: Ends::default(),
        })?;
        directory.sync().map_err(|error| failure("synchronise the directory", error))
    }
}

impl Drop for IncomingFile {
    fn drop(&mut self) {
        if let Some(partial) = &mut self.partial {
            partial.remove();
        }
    }
}

/// A regular file below a served directory.
#[derive(Debug)]
pub struct ServedFile {
    file: SourceFile,
    size: u64,
}

impl ServedFile {
    /// Opens the file at `path` below `root`. No link is followed.
    ///
    /// # Errors
    /// There is no such file, it is no regular file, or its size is unknown, as for files of /proc.
    pub fn open(root: &Directory, path: &RelPath) -> Result<Self, Failure> {
        let place = root.descend_to_parent(path).map_err(|error| super::failure::io_failure("open", &error))?;
        let (parent, name) = place.ok_or_else(|| Failure::from(FailCode::IsDirectory))?;
        let file = SourceFile::open(&parent, &name)?;
        match file.stamp().size {
            Entry::UNKNOWN_SIZE => Err(Failure::new(FailCode::SpecialFile, "its size is not known before it is read")),
            size => Ok(Self { file, size }),
        }
    }

    /// Bytes of the file when it was opened.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Fills `out` with the bytes at `offset`, all of which the file had when it was opened.
    ///
    /// # Errors
    /// They cannot be read, or the file has become shorter.
    pub fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), Failure> {
        let mut filled = 0;
        while filled < out.len() {
            match self.file.read(offset + filled as u64, &mut out[filled..])? {
                Chunk::Data(bytes) => filled += bytes,
                _ => return Err(Failure::new(FailCode::SourceChanged, "it became shorter while it was sent")),
            }
        }
        Ok(())
    }

    /// Names and sizes of the regular files in `root` itself, in ascending order. Incomplete files are left out.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn list(root: &Directory) -> Result<Vec<(Component, u64)>, Failure> {
        let names = root.names().map_err(|error| failure("read the directory", error))?;
        let whole = names.into_iter().filter(|name| !is_temporary(name));
        let sized = whole.filter_map(|name| Some((root.regular_size(&name)?, name)));
        Ok(sized.take(MOST_LISTED).map(|(size, name)| (name, size)).collect())
    }
}

/// Seconds since 1970 at the last tick of the kernel's clock.
pub fn unix_seconds() -> u32 {
    u32::try_from(stamp_now().seconds).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_becomes_shorter_is_named() {
        let root = std::env::temp_dir().join(format!("farhaul-single-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("a"), [7; 100]).unwrap();
        let directory = Directory::open(&root).unwrap();
        let mut file = ServedFile::open(&directory, &RelPath::parse(b"a").unwrap()).unwrap();
        file.read(90, &mut [0; 10]).unwrap();
        fs::write(root.join("a"), [7; 50]).unwrap();
        let shrunk = file.read(40, &mut [0; 20]).unwrap_err();
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(shrunk.code, FailCode::SourceChanged);
    }

    #[test]
    fn an_incomplete_file_is_private_and_goes_with_its_handle() {
        use std::os::unix::fs::PermissionsExt;
        let root = std::env::temp_dir().join(format!("farhaul-incoming-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let place = IncomingPlace::at(&root, true).unwrap();
        let name = Component::new(b"a").unwrap();
        let names = || -> Vec<_> { fs::read_dir(&root).unwrap().map(|entry| entry.unwrap()).collect() };
        let file = place.begin(&name, 10).unwrap();
        file.write(5, &[7; 5]).unwrap();
        let [only] = &names()[..] else { panic!("one file") };
        let shown = only.file_name().into_string().unwrap();
        assert!(shown.starts_with(".a.") && shown.ends_with(".fhpart"), "{shown}");
        assert_eq!(only.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        drop(file);
        assert!(names().is_empty());
        let too_large = place.begin(&name, u64::MAX).unwrap_err();
        assert!(too_large.code.is_out_of_space() && names().is_empty());
        let file = place.begin(&name, 2).unwrap();
        file.write(0, b"ab").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(root.join("a")).unwrap(), b"ab");
        fs::remove_dir_all(&root).unwrap();
    }
}
