//! System libraries that the engines are linked to.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::apt::{self, Administrator};
use crate::repo;

/// Debian's packages of them.
const PACKAGES: &[&str] = &["libibverbs1", "ibverbs-providers", "libnuma1", "libcurl4"];

/// The driver of NVIDIA's GPUs, which no package of ours stands in for.
const DRIVER: &str = "libcuda.so.1";

/// What a program has to know to load the engines.
pub(crate) struct Libraries {
    /// Whether the machine has the driver's library.
    pub(crate) driver: bool,
    /// Where unpacked libraries lie; empty when the system has all of them.
    pub(crate) folders: Vec<PathBuf>,
}

impl Libraries {
    /// Finds the libraries that `needing` are linked to, and gets those that are missing.
    pub(crate) fn provide(folder: &Path, needing: &[PathBuf], unpack: bool) -> Result<Self> {
        let sysroot = folder.join("sysroot");
        let (driver, mut absent) = missing(needing, &[])?;
        if absent.is_empty() {
            return Ok(Self::found(driver, Vec::new()));
        }
        let unpacked = library_folders(&sysroot)?;
        if !unpacked.is_empty() && missing(needing, &unpacked)?.1.is_empty() {
            return Ok(Self::found(driver, unpacked));
        }
        let administrator = if unpack { None } else { Administrator::find() };
        if let Some(administrator) = administrator {
            eprintln!("installing {} with apt-get", PACKAGES.join(", "));
            if let Err(error) = administrator.install(PACKAGES) {
                eprintln!("{error:#}\nunpacking them below target/ instead");
            }
            absent = missing(needing, &[])?.1;
            if absent.is_empty() {
                return Ok(Self::found(driver, Vec::new()));
            }
        }
        if apt::is_there() {
            eprintln!("unpacking {} below target/", PACKAGES.join(", "));
            apt::unpack(folder, &sysroot, PACKAGES)?;
            let unpacked = library_folders(&sysroot)?;
            absent = missing(needing, &unpacked)?.1;
            if absent.is_empty() {
                return Ok(Self::found(driver, unpacked));
            }
        }
        bail!(
            "{} can't be loaded; install {} (Debian's names; elsewhere the packages of libibverbs with \
             its mlx5 provider, libnuma and libcurl), then run this again",
            absent.join(", "),
            PACKAGES.join(", ")
        )
    }

    fn found(driver: bool, folders: Vec<PathBuf>) -> Self {
        Self { driver, folders }
    }
}

/// Whether the driver is there, and the names of other libraries that are not.
fn missing(needing: &[PathBuf], folders: &[PathBuf]) -> Result<(bool, Vec<String>)> {
    let mut names = Vec::new();
    for library in needing {
        let mut ldd = Command::new("ldd");
        if !folders.is_empty() {
            let before = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
            let path = folders.iter().cloned().chain(env::split_paths(&before));
            ldd.env("LD_LIBRARY_PATH", env::join_paths(path)?);
        }
        let printed = repo::captured(ldd.arg(library)).with_context(|| super::broken(library))?;
        names.extend(not_found(&printed));
    }
    names.sort_unstable();
    names.dedup();
    let driver = !names.iter().any(|name| name == DRIVER);
    names.retain(|name| name != DRIVER);
    Ok((driver, names))
}

/// The libraries that ldd did not find.
fn not_found(output: &str) -> Vec<String> {
    let names = output
        .lines()
        .filter_map(|line| line.trim().strip_suffix("=> not found"));
    names.map(|name| name.trim().to_owned()).collect()
}

/// Folders of an unpacked system that hold shared libraries.
fn library_folders(sysroot: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for top in ["usr/lib", "lib"].map(|top| sysroot.join(top)) {
        let below = entries(&top)?;
        let of_a_processor = |folder: &PathBuf| {
            let name = folder.file_name().unwrap_or_default();
            name.to_string_lossy().ends_with("-linux-gnu")
        };
        let folders = below.into_iter().filter(of_a_processor).chain([top]);
        for folder in folders {
            if entries(&folder)?.iter().any(|file| is_shared(file)) {
                found.push(folder);
            }
        }
    }
    Ok(found)
}

fn is_shared(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default();
    name.to_string_lossy().contains(".so.")
}

/// What a folder holds; nothing if there is no such folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        found.push(entry?.path());
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::not_found;

    #[test]
    fn libraries_that_ldd_did_not_find_are_named() {
        let output = "\tlinux-vdso.so.1 (0x00007f93678c1000)\n\
                      \tlibibverbs.so.1 => not found\n\
                      \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f936601e000)\n\
                      \tlibcuda.so.1 => not found\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x00007f93678c3000)\n";
        assert_eq!(not_found(output), ["libibverbs.so.1", "libcuda.so.1"]);
        assert!(not_found("\tstatically linked\n").is_empty());
    }
}
