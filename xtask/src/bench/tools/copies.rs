//! Copies over loopback by farhaul, scp and rsync, from memory to memory, and their price for both ends.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::super::process::Process;
use super::super::samples::Skipped;
use super::namespaces::{Hosts, Wire};
use super::ssh::{self, Folder, SSHD};
use super::{OPENING, Tools, ensure_installed};
use crate::clock::{Stopwatch, pause, processor_time_of, processor_time_of_children};

/// A file system in memory, so that no disk is measured.
const MEMORY: &str = "/dev/shm";
/// Files in a folder of a tree.
const FOLDER_FILES: u64 = 100;
/// Longest time of a copy.
const PATIENCE: Duration = Duration::from_secs(120);
/// Time for a server to collect the processes of a session that has ended.
const SETTLING: Duration = Duration::from_millis(200);
/// Interval between looks at whether a server listens.
const LOOK: Duration = Duration::from_millis(10);

/// A program that copies, with its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Copier {
    /// `farhaul copy` to `farhaul serve`.
    Farhaul,
    /// The same with `--plain`.
    FarhaulPlain,
    /// `scp` with AES-128-GCM.
    Scp,
    /// `rsync` to its own daemon, without encryption.
    Rsync,
}

/// The price of a copy, in seconds.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Copied {
    /// From the start of the client to its end.
    pub(in super::super) wall: f64,
    /// Processor time of the client and of the server, from before the client until after it.
    pub(in super::super) processor: f64,
}

/// Files to copy, removed with their handle.
#[derive(Debug)]
pub(in super::super) struct Source {
    folder: PathBuf,
    files: u64,
    bytes: u64,
}

impl Source {
    /// `files` of `size` bytes each, which no program can compress.
    pub(in super::super) fn new(files: u64, size: u64) -> Result<Self> {
        ensure!(Path::new(MEMORY).is_dir(), Skipped(format!("there is no {MEMORY}")));
        Self::within(Path::new(MEMORY), files, size)
    }

    fn within(parent: &Path, files: u64, size: u64) -> Result<Self> {
        let folder = parent.join(format!("farhaul-bench-{}", std::process::id()));
        let source = Self { folder, files, bytes: files * size };
        let random = File::open("/dev/urandom")?;
        for index in 0..files {
            let parent = source.folder.join(format!("source/{}", index / FOLDER_FILES));
            if index % FOLDER_FILES == 0 {
                fs::create_dir_all(&parent)?;
            }
            io::copy(&mut (&random).take(size), &mut File::create(parent.join(index.to_string()))?)?;
        }
        Ok(source)
    }

    fn at(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// # Errors
    /// The target lacks something.
    fn ensure_copied(&self) -> Result<()> {
        let found = (files_of(&self.folder.join("source"))?, files_of(&self.folder.join("target/source"))?);
        ensure!(
            found.0 == (self.files, self.bytes) && found.0 == found.1,
            "files and bytes of source, target: {found:?}"
        );
        Ok(())
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // Files left in memory end with the machine.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Number and bytes of the files below a folder.
fn files_of(folder: &Path) -> Result<(u64, u64)> {
    let (mut files, mut bytes) = (0, 0);
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let (count, size) =
            if entry.file_type()?.is_dir() { files_of(&entry.path())? } else { (1, entry.metadata()?.len()) };
        files += count;
        bytes += size;
    }
    Ok((files, bytes))
}

impl Tools {
    /// Copies `source` over the loopback of a new host, again and again to the same place: all but the first copy find it
    /// unchanged. Each of the `rounds` is a number of copies, whose mean counts.
    ///
    /// # Errors
    /// [`Skipped`] without the program, or without the right to make a host.
    pub(in super::super) fn copies(&self, copier: Copier, source: &Source, rounds: &[u16]) -> Result<Vec<Copied>> {
        let target = source.folder.join("target");
        fs::create_dir_all(&target)?;
        // Removed with the source, and before that by the next copier.
        let _emptied = Emptied(target);
        let folder = copier.prepare(source)?;
        let (serve, port, client) = self.copy_lines(copier, source, folder.as_ref());
        let hosts = Hosts::new(Wire::Loopback).map_err(|error| Skipped(format!("{error:#}")))?;
        let server = Process::start(&mut hosts.far(&format!("exec {serve}")))?;
        wait_for_port(server.id(), port)?;
        let client = || hosts.near(&format!("exec {client}"));
        let copies: Vec<Copied> = rounds.iter().map(|&count| copied(&server, &client, count)).collect::<Result<_>>()?;
        source.ensure_copied()?;
        server.interrupt();
        Ok(copies)
    }

    /// The command of the server, its port, and the command of the client.
    fn copy_lines(&self, copier: Copier, source: &Source, folder: Option<&Folder>) -> (String, u16, String) {
        let (from, to) = (source.at("source"), source.at("target"));
        let own = format!("env XDG_CONFIG_HOME={} {}", source.at("home"), self.farhaul_path().display());
        let at = |name: &str| folder.map(|folder| folder.0.join(name).display().to_string()).unwrap_or_default();
        match copier {
            Copier::Farhaul | Copier::FarhaulPlain => {
                let plain = if copier == Copier::FarhaulPlain { "--plain " } else { "" };
                (
                    format!("{own} serve {plain}--no-path-memory --root {to} --listen 127.0.0.1:9000"),
                    9_000,
                    format!("{own} copy {plain}--no-path-memory -qr {from} udt://127.0.0.1:9000/"),
                )
            }
            Copier::Scp => (
                format!("{SSHD} -D -f {}", at("sshd_config")),
                ssh::PORT,
                format!("scp -c aes128-gcm@openssh.com -F {} -qrp {from} far:{to}/", at("config")),
            ),
            Copier::Rsync => (
                format!("rsync --daemon --no-detach --address=127.0.0.1 --config={}", source.at("rsyncd.conf")),
                8_730,
                format!("rsync -rpt {from} rsync://127.0.0.1:8730/target/"),
            ),
        }
    }
}

impl Copier {
    /// The name in tables.
    pub(in super::super) const fn name(self) -> &'static str {
        match self {
            Self::Farhaul => "farhaul",
            Self::FarhaulPlain => "farhaul, plain",
            Self::Scp => "scp aes128-gcm",
            Self::Rsync => "rsync daemon",
        }
    }

    /// Checks that it is there, and writes its settings.
    fn prepare(self, source: &Source) -> Result<Option<Folder>> {
        match self {
            Self::Farhaul | Self::FarhaulPlain => {}
            Self::Scp => {
                let folder = Folder::new()?;
                folder.configure("127.0.0.1")?;
                return Ok(Some(folder));
            }
            Self::Rsync => {
                ensure_installed("rsync", "rsync")?;
                let settings = format!(
                    "port = 8730\nuse chroot = no\nreverse lookup = no\nuid = 0\ngid = 0\n[target]\npath = {}\nread only = no\n",
                    source.at("target")
                );
                fs::write(source.at("rsyncd.conf"), settings)?;
            }
        }
        Ok(None)
    }
}

/// A folder that is removed with its handle.
struct Emptied(PathBuf);

impl Drop for Emptied {
    fn drop(&mut self) {
        // The next copy then tells that it found too much.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a client some times, and counts it and its server. The mean of all.
fn copied(server: &Process, client: &dyn Fn() -> Command, count: u16) -> Result<Copied> {
    let processor = || -> Result<f64> {
        let times = processor_time_of(server.id()).zip(processor_time_of_children());
        let (server, clients) = times.context("no processor time in /proc")?;
        Ok((server + clients).as_secs_f64())
    };
    let before = processor()?;
    let stopwatch = Stopwatch::start();
    for _ in 0..count {
        Process::start(&mut client())?.finish(PATIENCE)?;
    }
    let wall = stopwatch.elapsed().as_secs_f64();
    pause(SETTLING);
    Ok(Copied { wall: wall / f64::from(count), processor: (processor()? - before) / f64::from(count) })
}

/// Waits until a process on a host of its own, or another one there, listens.
fn wait_for_port(process: u32, port: u16) -> Result<()> {
    let stopwatch = Stopwatch::start();
    let listens = |table| {
        let text = fs::read_to_string(format!("/proc/{process}/net/{table}")).unwrap_or_default();
        has_port(&text, port)
    };
    while !["tcp", "udp", "udp6"].into_iter().any(listens) {
        ensure!(!stopwatch.left_of(OPENING).is_zero(), "nothing listens on port {port} within {OPENING:?}");
        pause(LOOK);
    }
    Ok(())
}

/// Whether a socket in a table of proc_net(5) has this port of its own: `0: 0100007F:2328 00000000:0000 0A …`.
fn has_port(table: &str, port: u16) -> bool {
    let port = format!(":{port:04X}");
    table.lines().any(|line| line.split_whitespace().nth(1).is_some_and(|own| own.ends_with(&port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_port_is_found_in_the_kernels_table() {
        let table = "  sl  local_address rem_address   st\n   0: 0100007F:2328 00000000:0000 0A 0:0 00:0 0\n";
        assert!(has_port(table, 9_000));
        assert!(!has_port(table, 9_001));
    }

    #[test]
    fn a_source_has_its_files_in_folders_and_leaves_nothing() {
        let source = Source::within(&std::env::temp_dir(), FOLDER_FILES + 1, 8).unwrap();
        assert_eq!(files_of(&source.folder).unwrap(), (FOLDER_FILES + 1, 8 * (FOLDER_FILES + 1)));
        assert!(source.folder.join("source/1/100").is_file() && source.ensure_copied().is_err());
        let folder = source.folder.clone();
        drop(source);
        assert!(!folder.exists());
    }
}
