//! Copies of small files over SSH: beside their parts, which are a login by ssh and a copy to a server that runs, and beside
//! scp.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};

use super::super::quantity::Quantity;
use super::super::samples::Measured;
use super::{Emulated, Tools, ensure_installed};

pub(super) const SSHD: &str = "/usr/sbin/sshd";
/// The port of the sshd.
pub(super) const PORT: u16 = 2_222;
/// Bytes of the file of copies beside their parts.
const SMALL: usize = 100_000;
/// Bytes of the file of copies beside scp.
const TINY: usize = 1_000;
/// Clock ticks in a second of /proc (proc(5); 100 on every Linux of today).
const TICKS: f64 = 100.0;
const PATH: Emulated =
    Emulated { rate: 1_000_000_000, delay: Duration::from_millis(50), loss: 0.0, mtu: 1500, queue: None, seed: 1 };
/// Longest time of all copies.
const SECONDS: u64 = 60;

/// The times of copies of one file.
pub(in super::super) struct SshTimes {
    /// To the far host and from there, over SSH.
    pub(in super::super) over_ssh: [Measured; 2],
    /// `ssh host true`, and then the same copy to or from a server.
    pub(in super::super) in_parts: [Measured; 2],
    /// The same by scp.
    pub(in super::super) by_scp: [Measured; 2],
}

impl Tools {
    /// Copies over 1 Gbit/s, 100 ms, with a sshd of its own.
    pub(in super::super) fn copies_over_ssh(&self) -> Result<SshTimes> {
        let folder = Folder::new()?;
        let at = |name: &str| folder.0.join(name).display().to_string();
        let program = self.farhaul_path();
        let program = program.display();
        let sshd = format!("exec {SSHD} -D -f {}", at("sshd_config"));
        let own = format!("export XDG_CONFIG_HOME={}; ", at("home"));
        let server = format!("{own}exec {program} serve --root {} --listen :9000", at("there"));
        // Six times in milliseconds. The first login and the first copy warm the caches.
        let script = format!(
            "{own}sed \"s/PEER/$FARHAUL_PEER/\" {config}.in > {config}\n\
             F={program}; S='ssh -F {config}'; U=udt://$FARHAUL_PEER:9000; C=\"$F copy\"\n\
             O=\"$C --remote-path $F\"\n\
             for i in 1 2 3 4 5 6 7 8 9 10; do $S far true && $C {small} $U/first > {log} && break; sleep 0.2; done\n\
             time_of() {{ b=$(date +%s%N); \"$@\" > {log} 2>&1 || exit 1; e=$(date +%s%N); echo $(( (e - b) / 1000000 )); }}\n\
             parts() {{ $S far true && $C \"$@\"; }}\n\
             time_of $O --ssh \"$S\" {small} far:{there}/pushed\n\
             time_of $O --ssh \"$S\" far:{small} {back}/pulled\n\
             time_of parts {small} $U/second\n\
             time_of parts $U/first {back}/fetched\n\
             time_of scp -q -F {config} {small} far:{there}/by-scp\n\
             time_of scp -q -F {config} far:{small} {back}/by-scp\n",
            config = at("config"),
            log = at("log"),
            small = at("small"),
            there = at("there"),
            back = at("back"),
        );
        fs::write(at("script"), script)?;
        let said = self.emulate(&PATH, &[&sshd, &server], &format!("sh {}", at("script")), SECONDS)?;
        let times: Vec<f64> = said.output.lines().filter_map(|line| line.parse().ok()).collect();
        let [pushed, pulled, pushed_in_parts, pulled_in_parts, pushed_by_scp, pulled_by_scp] = times[..] else {
            anyhow::bail!("not every copy succeeded: {:?}", said.output)
        };
        let of = |milliseconds: f64| Measured::of([(Quantity::Completion, milliseconds / 1e3)]);
        Ok(SshTimes {
            over_ssh: [of(pushed), of(pulled)],
            in_parts: [of(pushed_in_parts), of(pulled_in_parts)],
            by_scp: [of(pushed_by_scp), of(pulled_by_scp)],
        })
    }

    /// Copies 1 kB over the same path, by this program and by scp, in this order or with `scp_first` in the other one. The
    /// figures are in the order of the copies.
    pub(in super::super) fn starts_over_ssh(&self, scp_first: bool) -> Result<[Measured; 2]> {
        let folder = Folder::new()?;
        let at = |name: &str| folder.0.join(name).display().to_string();
        let program = self.farhaul_path();
        let program = program.display();
        let sshd = format!("exec {SSHD} -D -f {}", at("sshd_config"));
        let (config, tiny, there) = (at("config"), at("tiny"), at("there"));
        let copy = format!("{program} copy -q --remote-path {program} --ssh \"ssh -F {config}\" {tiny} far:{there}/");
        let copies = [format!("{copy}ours"), format!("scp -q -F {config} {tiny} far:{there}/theirs")];
        let [first, second] = if scp_first { [&copies[1], &copies[0]] } else { [&copies[0], &copies[1]] };
        // Milliseconds, and ticks of the processor at both ends. The first login and copy warm the caches. The server has
        // collected the processes of a copy after a while.
        let script = format!(
            "export XDG_CONFIG_HOME={home}\nsed \"s/PEER/$FARHAUL_PEER/\" {config}.in > {config}\n\
             for i in 1 2 3 4 5 6 7 8 9 10; do ssh -F {config} far true && {copy}warm > {log} 2>&1 && break; sleep 0.2; done\n\
             ticks() {{ set -- $(cat /proc/$(cat {pid})/stat); t=$(( ${{14}} + ${{15}} + ${{16}} + ${{17}} ))\n\
             set -- $(cat /proc/$$/stat); echo $(( t + ${{16}} + ${{17}} )); }}\n\
             price() {{ sleep 0.5; t=$(ticks); b=$(date +%s%N); \"$@\" > {log} 2>&1 || exit 1; e=$(date +%s%N)\n\
             sleep 0.5; echo $(( (e - b) / 1000000 )) $(( $(ticks) - t )); }}\n\
             price {first}\nprice {second}\n",
            home = at("home"),
            log = at("log"),
            pid = at("pid"),
        );
        fs::write(at("script"), script)?;
        let said = self.emulate(&PATH, &[&sshd], &format!("sh {}", at("script")), SECONDS)?;
        let prices: Vec<Measured> = said.output.lines().filter_map(price).collect();
        <[Measured; 2]>::try_from(prices).map_err(|_| anyhow!("not every copy succeeded: {:?}", said.output))
    }
}

/// Milliseconds, and ticks of the processor.
fn price(line: &str) -> Option<Measured> {
    let (milliseconds, ticks) = line.split_once(' ')?;
    let (wall, processor) = (milliseconds.parse::<f64>().ok()? / 1e3, ticks.parse::<f64>().ok()? / TICKS);
    Some(Measured::of([(Quantity::Completion, wall), (Quantity::CpuTime, processor)]))
}

/// Keys, settings and files, removed afterwards.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Result<Self> {
        ensure_installed("sshd", "openssh-server")?;
        ensure_installed("scp", "openssh-client")?;
        let folder = Self(std::env::temp_dir().join(format!("farhaul-bench-ssh-{}", std::process::id())));
        let at = |name: &str| folder.0.join(name);
        for name in ["there", "back", "home"] {
            fs::create_dir_all(at(name))?;
        }
        // The folder for the separated privileges of sshd. Packages make it when the service starts.
        fs::create_dir_all("/run/sshd").context("copies over SSH are measured by root")?;
        for name in ["host", "user"] {
            let mut make = Command::new("ssh-keygen");
            let made = make.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(at(name)).status()?;
            ensure!(made.success(), "ssh-keygen made no key");
        }
        fs::write(at("small"), vec![0x5A; SMALL])?;
        fs::write(at("tiny"), vec![0x5A; TINY])?;
        let (host, user) = (at("host").display().to_string(), at("user").display().to_string());
        fs::write(
            at("sshd_config"),
            format!(
                "Port {PORT}\nHostKey {host}\nAuthorizedKeysFile {user}.pub\nPermitRootLogin yes\nPasswordAuthentication no\n\
                 StrictModes no\nUsePAM no\nUseDNS no\nSubsystem sftp internal-sftp\nPidFile {}\n",
                at("pid").display()
            ),
        )?;
        fs::write(
            at("config.in"),
            format!(
                "Host far\n HostName PEER\n Port {PORT}\n User root\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n \
                 LogLevel ERROR\n IdentityFile {user}\n"
            ),
        )?;
        Ok(folder)
    }

    /// Sets the address of the host `far`.
    pub(super) fn configure(&self, address: &str) -> Result<()> {
        let settings = fs::read_to_string(self.0.join("config.in"))?;
        Ok(fs::write(self.0.join("config"), settings.replace("PEER", address))?)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder left among the temporary ones does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_milliseconds_and_ticks() {
        let measured = price("3300 26").unwrap();
        assert_eq!(measured.figure(Quantity::Completion), Some(3.3));
        assert_eq!(measured.figure(Quantity::CpuTime), Some(0.26));
        assert!(price("sshd: no hostkeys").is_none());
    }
}
