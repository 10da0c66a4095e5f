//! System packages for the tests: installed on request, otherwise named.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::sections::{CheckStatus, succeed};

/// A Debian package, signs of its presence, and the tests skipped without it.
struct Package {
    name: &'static str,
    /// Any of these: a program by name, or a file by its absolute path.
    signs: &'static [&'static str],
    without: &'static str,
}

/// The packages that the tests use in addition to Rust.
const PACKAGES: &[Package] = &[
    Package { name: "g++", signs: &["g++"], without: "everything against the reference library" },
    Package {
        name: "libudt-dev",
        signs: &["/usr/include/udt/udt.h", "/usr/include/udt.h", "/usr/local/include/udt.h"],
        without: "everything against the reference library",
    },
    Package { name: "tshark", signs: &["tshark"], without: "a second opinion on our packets" },
    Package { name: "strace", signs: &["strace"], without: "disks that are made slow, and faults of system calls" },
    Package {
        name: "util-linux",
        signs: &["setpriv"],
        without: "programs with fewer rights than the tests have, and tests of networks without root",
    },
    Package { name: "iproute2", signs: &["ip", "/usr/sbin/ip", "/sbin/ip"], without: "forged packets" },
    Package { name: "iputils-ping", signs: &["ping"], without: "a second opinion on emulated delays" },
    Package { name: "iperf3", signs: &["iperf3"], without: "a second opinion on emulated rates and losses" },
    Package { name: "openssh-server", signs: &["/usr/sbin/sshd"], without: "copies over SSH" },
    Package { name: "rsync", signs: &["rsync"], without: "rsync through `farhaul rsh`" },
    Package { name: "git", signs: &["git"], without: "git through `farhaul rsh`" },
    Package { name: "borgbackup", signs: &["borg"], without: "borg through `farhaul rsh`" },
    Package { name: "sshfs", signs: &["sshfs"], without: "sshfs through `farhaul rsh`" },
    Package { name: "acl", signs: &["setfacl"], without: "access lists in copies of trees" },
    Package { name: "attr", signs: &["setfattr"], without: "extended attributes in copies of trees" },
    Package { name: "python3-venv", signs: &["python3"], without: "the Python package" },
    Package { name: "tcpdump", signs: &["tcpdump"], without: "captures of real sockets" },
];

/// The option of `cargo xtask test` that installs packages.
pub(crate) const INSTALL: &str = "--install";

/// States what will be skipped without the missing packages. With [`INSTALL`] they are installed before, as root on Debian.
pub(crate) fn provide(may_install: bool) -> Result<CheckStatus> {
    let missing = missing();
    if missing.is_empty() {
        println!("all there: {}", names(PACKAGES.iter()));
        return Ok(CheckStatus::Passed);
    }
    if !may_install {
        return Ok(CheckStatus::Skipped(explain(&missing)));
    }
    if is_root() && is_present("apt-get") {
        let installed = install(&missing);
        let missing = self::missing();
        if missing.is_empty() {
            return Ok(CheckStatus::Passed);
        }
        return Ok(CheckStatus::Skipped(match installed {
            Ok(_) => explain(&missing),
            Err(error) => format!("{} ({error:#})", explain(&missing)),
        }));
    }
    Ok(CheckStatus::Skipped(format!(
        "{}; as root: apt-get install {}",
        explain(&missing),
        names(missing.iter().copied())
    )))
}

/// How to get what [`provide`] did not find, if anything is missing.
pub(crate) fn remedy() -> Option<String> {
    let missing = missing();
    let names = names(missing.iter().copied());
    (!missing.is_empty())
        .then(|| format!("to run the rest, as root on Debian or Ubuntu: cargo xtask test {INSTALL}    # {names}"))
}

fn install(missing: &[&'static Package]) -> Result<CheckStatus> {
    let apt = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").arg("-qq");
        command
    };
    succeed(apt().arg("update"))?;
    let _quiet = NoServices::begin();
    succeed(
        apt().args(["install", "--yes", "--no-install-recommends"]).args(missing.iter().map(|package| package.name)),
    )
}

/// What Debian asks before a package starts its service (invoke-rc.d(8)).
const POLICY: &str = "/usr/sbin/policy-rc.d";
/// "Action forbidden by policy".
const FORBIDDEN: &str = "#!/bin/sh\nexit 101\n";

/// Keeps packages from starting services on this machine: the tests start the servers that they need.
struct NoServices;

impl NoServices {
    /// `None` if the machine has a policy of its own.
    fn begin() -> Option<Self> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(POLICY).ok()?;
        file.write_all(FORBIDDEN.as_bytes()).ok()?;
        Some(Self)
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        let _ = fs::remove_file(POLICY);
    }
}

fn missing() -> Vec<&'static Package> {
    PACKAGES.iter().filter(|package| !package.signs.iter().any(|sign| is_present(sign))).collect()
}

/// Whether a program, or a file by its absolute path, exists.
pub(crate) fn is_present(sign: &str) -> bool {
    if sign.starts_with('/') {
        return Path::new(sign).exists();
    }
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(sign).is_file()))
}

pub(crate) fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn names<'a>(packages: impl Iterator<Item = &'a Package>) -> String {
    packages.map(|package| package.name).collect::<Vec<_>>().join(" ")
}

fn explain(missing: &[&Package]) -> String {
    missing
        .iter()
        .map(|package| format!("no {}: {} is left out", package.name, package.without))
        .collect::<Vec<_>>()
        .join("; ")
}
