//! Packages of Debian and its relatives: installed as root, or unpacked into a folder without.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::repo;

/// These belong to the dynamic linker of the running system, which can't be changed for one program.
const NEVER_UNPACKED: &[&str] = &["libc6", "libc-bin"];

/// Whether this system has apt-get.
pub(crate) fn is_there() -> bool {
    repo::succeeds(Command::new("apt-get").arg("--version"))
}

/// The right to install packages.
pub(crate) struct Administrator {
    prefix: &'static [&'static str],
}

impl Administrator {
    /// Root, or somebody whom sudo asks for no password; nobody where there is no apt-get.
    pub(crate) fn find() -> Option<Self> {
        if !is_there() {
            return None;
        }
        let user = repo::captured(Command::new("id").arg("-u"));
        if user.is_ok_and(|id| id.trim() == "0") {
            return Some(Self { prefix: &["env"] });
        }
        let sudo = repo::succeeds(Command::new("sudo").args(["-n", "true"]));
        sudo.then_some(Self {
            prefix: &["sudo", "-n", "env"],
        })
    }

    /// Installs packages with what they depend on, and nothing that they only recommend.
    pub(crate) fn install(&self, packages: &[&str]) -> Result<()> {
        // Lists that are there may do, even when they can't be brought up to date.
        if let Err(error) = repo::captured(&mut self.apt_get(&["update"])) {
            eprintln!("{error:#}");
        }
        let mut install = self.apt_get(&["install", "-y", "--no-install-recommends"]);
        repo::captured(install.args(packages)).map(drop)
    }

    fn apt_get(&self, args: &[&str]) -> Command {
        let mut words = self.prefix.iter();
        let mut command = Command::new(words.next().unwrap_or(&"env"));
        command
            .args(words)
            // dpkg looks for ldconfig, which an ordinary search path may lack.
            .arg(format!(
                "PATH={}:/usr/local/sbin:/usr/sbin:/sbin",
                env::var("PATH").unwrap_or_default()
            ))
            .args(["DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "apt-get"])
            .args(["-o", "DPkg::Lock::Timeout=120"])
            .args(args)
            .stdin(Stdio::null());
        command
    }
}

/// Unpacks packages, and those of their dependencies that are not installed, into `sysroot`.
pub(crate) fn unpack(folder: &Path, sysroot: &Path, packages: &[&str]) -> Result<()> {
    let own = folder.join("apt");
    let partial = folder.join("sysroot.partial");
    for old in [&own, &partial] {
        if old.exists() {
            fs::remove_dir_all(old)?;
        }
    }
    let debs = own.join("debs");
    for new in [
        &own.join("lists/partial"),
        &own.join("cache/archives/partial"),
        &debs,
        &partial,
    ] {
        fs::create_dir_all(new).with_context(|| format!("can't make {}", new.display()))?;
    }
    repo::captured(apt_get(&own).arg("update"))?;
    let mut simulate = apt_get(&own);
    simulate.args(["install", "--simulate", "--no-install-recommends"]);
    let simulation = repo::captured(simulate.args(packages))?;
    let needed = to_install(&simulation);
    repo::captured(
        apt_get(&own)
            .arg("download")
            .args(&needed)
            .current_dir(&debs),
    )?;
    for deb in archives(&debs)? {
        repo::captured(Command::new("dpkg").arg("-x").arg(&deb).arg(&partial))?;
    }
    if sysroot.exists() {
        fs::remove_dir_all(sysroot)?;
    }
    fs::rename(&partial, sysroot)?;
    fs::remove_dir_all(&own)?;
    Ok(())
}

/// apt-get with lists and archives of its own, so that it needs no rights.
fn apt_get(own: &Path) -> Command {
    let mut command = Command::new("apt-get");
    command
        .env("LC_ALL", "C")
        .arg("-o")
        .arg(format!("Dir::State::lists={}", own.join("lists").display()))
        .arg("-o")
        .arg(format!("Dir::Cache={}", own.join("cache").display()))
        // Root would read the archives as another user, who may not enter a home folder.
        .args(["-o", "APT::Sandbox::User=root"])
        .args(["-o", "Debug::NoLocking=1"])
        .stdin(Stdio::null());
    command
}

/// The packages that a simulated installation would install.
fn to_install(simulation: &str) -> Vec<&str> {
    let lines = simulation
        .lines()
        .filter_map(|line| line.strip_prefix("Inst "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| !NEVER_UNPACKED.contains(name))
        .collect()
}

fn archives(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::to_install;

    #[test]
    fn a_simulation_tells_what_would_be_installed() {
        let simulation = "NOTE: This is only a simulation!\n\
                          The following NEW packages will be installed:\n  libcurl4 libnl-3-200\n\
                          Inst libnl-3-200 (3.7.0-0.2+b1 Debian:12.12/oldstable [amd64])\n\
                          Inst libc6 [2.36-9] (2.36-10 Debian:12.12/oldstable [amd64])\n\
                          Inst libssl3 [3.0.1] (3.0.2 Debian:12.12/oldstable [amd64]) []\n\
                          Conf libnl-3-200 (3.7.0-0.2+b1 Debian:12.12/oldstable [amd64])\n";
        assert_eq!(to_install(simulation), ["libnl-3-200", "libssl3"]);
        assert!(to_install("0 upgraded, 0 newly installed\n").is_empty());
    }
}
