//! A file under its temporary name, until it is whole.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use farhaul_session::{Component, Existing, FailCode, Failure, Put, ServicePath};
use rustix::fs::{FileType, RenameFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

use super::now;
use crate::claims::Claims;
use crate::directory::{Directory, is_same, kind};
use crate::failure::{cannot_change, cannot_make, failure, io_failure};
use crate::properties::TargetProperties;
use crate::replacement::mode_after;
use crate::target::{Target, words};
use crate::temporary::temporary_name;
use crate::umask::umask;

/// A file that has its final name after its commit. Its drop removes it.
#[derive(Debug)]
pub struct NewFile<C> {
    directory: Directory,
    file: File,
    /// Its name until the commit.
    temporary: Component,
    name: Component,
    put: Put,
    /// Bytes written.
    size: u64,
    /// The bytes that it may still get.
    claim: C,
    is_over: bool,
}

impl<C> NewFile<C> {
    /// Creates the file for a put, with this name in its directory.
    pub(super) fn begin((directory, name): (Directory, Component), put: &Put, claim: C) -> Result<Self, Failure> {
        match (put.existing, directory.stat(&name).map(|stat| kind(&stat))) {
            (Existing::Replace, Ok(FileType::RegularFile)) | (_, Err(_)) => {}
            (_, Ok(kind)) => return Err(in_the_way(&name, kind)),
        }
        let free = directory.free_space().map_err(|error| failure("ask for the free space", error))?;
        if let Some(size) = put.size.filter(|&size| size > free) {
            return Err(Failure::new(FailCode::NoSpace, format!("{size} bytes are needed and {free} are free")));
        }
        let temporary = temporary_name(&name)?;
        let file = directory.make_file(&temporary).map_err(|error| cannot_make("file", &directory, error))?;
        Ok(Self { directory, file, temporary, name, put: put.clone(), size: 0, claim, is_over: false })
    }

    /// The bytes that it may still get.
    pub(super) const fn claim(&mut self) -> &mut C {
        &mut self.claim
    }

    pub(super) const fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(|error| io_failure("write", &error))?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Makes the content survive a crash, and gives the file its name. Returns its place, size and properties. On failure it is gone.
    pub(super) fn commit(mut self) -> Result<(ServicePath, u64, Option<Stat>), Failure> {
        let target = Target { directory: &self.directory, name: &self.name };
        let mode = self.put.mode & !umask();
        let mode = match self.put.existing {
            Existing::Replace => target.replaced().map_or(mode, |old| mode_after(&old, &self.file)),
            Existing::Keep => mode,
        };
        TargetProperties::plain(Some(mode), self.put.mtime.unwrap_or_else(now))
            .set(&self.file)
            .map_err(|error| failure("set mode and time", error))?;
        retry_on_intr(|| rustix::fs::fsync(&self.file)).map_err(|error| failure("write to the disk", error))?;
        match self.put.existing {
            Existing::Replace => target.take(&self.temporary, &Arc::<Claims>::default())?,
            Existing::Keep => self.take_free_name()?,
        }
        self.is_over = true;
        self.directory.sync().map_err(|error| failure("synchronise the directory", error))?;
        Ok((self.put.place.clone(), self.size, rustix::fs::fstat(&self.file).ok()))
    }

    /// Takes the name, if no other entry has it.
    fn take_free_name(&self) -> Result<(), Failure> {
        let taken = self.directory.rename(&self.temporary, &self.name, RenameFlags::NOREPLACE);
        let taken = match taken {
            // The file system has no such step.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                self.directory.move_to_free_name(&self.temporary, &self.directory, &self.name)
            }
            taken => taken,
        };
        taken.map_err(|error| match error {
            Errno::EXIST => match self.directory.stat(&self.name) {
                Ok(stat) => in_the_way(&self.name, kind(&stat)),
                Err(_) => FailCode::Exists.into(),
            },
            error => cannot_change("give the file its name", &self.directory, &self.name, error),
        })
    }
}

impl<C> Drop for NewFile<C> {
    fn drop(&mut self) {
        let named = self.directory.stat(&self.temporary);
        let is_ours = named.is_ok_and(|named| rustix::fs::fstat(&self.file).is_ok_and(|file| is_same(&named, &file)));
        if !self.is_over && is_ours {
            // If removal fails, the temporary name shows that the file is incomplete.
            let _ = self.directory.remove(&self.temporary);
        }
    }
}

pub(super) fn in_the_way(name: &Component, kind: FileType) -> Failure {
    Failure::new(FailCode::Exists, format!("{name} is {}", words(kind)))
}
