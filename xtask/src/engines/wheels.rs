//! Published engines, pinned by version and hash, each in a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::python::{self, Python};
use crate::repo;

/// Minor versions of Python 3 for which Mooncake publishes wheels.
pub(crate) const MINORS: [u32; 4] = [10, 11, 12, 13];

/// A package and every wheel of it that we accept.
struct Package {
    name: &'static str,
    version: &'static str,
    /// SHA-256 of the wheels of both processors.
    hashes: &'static [&'static str],
}

/// Holds `libtokenspeed_transfer_engine.so`.
const TOKENSPEED: Package = Package {
    name: "tokenspeed_mooncake",
    version: "0.3.13.post20261027",
    hashes: &[
        "a603c0b80a96b14fee6d21a8bd1ef79ab94d0f34405cfe6c7fc251ed8a57f610",
        "8e016fcd7c33fd5ed0f34689fa12cd20c7bc0af2cf22cd0bcdfd837141624871",
    ],
};

/// `libcudart.so.13`, which that library is linked to.
const CUDA_RUNTIME: Package = Package {
    name: "nvidia-cuda-runtime",
    version: "13.5.37",
    hashes: &[
        "df2b79a8852f10d1fef8c848489c49eebb5754051bf870202a862831412b179d",
        "de2dc5a7367974228b0a69588a9acc9340d3768bef1bf38bf0801eb08497cd2d",
    ],
};

/// The engine that vLLM's users have, as a Python module; for Python 3.10 to 3.13.
const OFFICIAL: Package = Package {
    name: "mooncake_transfer_engine_non_cuda",
    version: "0.3.13.post1",
    hashes: &[
        "7390920887511db3f3259aba48ff212de7771ab6f1cb48c7954dd5461ca9feae",
        "ca9f668a04ffe648b250fda28b97d0a7da149cb110dec5cf3d166a9e68afc940",
        "892fd0ee77d736fc8d625981c485a43282dbdbc0926b95f05c1cadd8b0debe51",
        "0f97a95a3af7ac7532affe5badc4128c71d7bff8740118fea9a8bbbbc65dd578",
        "b44a252058db23c4542996699cb740079f08630931c02745b2f143d1f6e7745d",
        "04796829bebb1b34f84460e9ab1a630162a20d848819514463f6ca839a871138",
        "7ba184594fa0020ab388dda825b8b53d61edd8f175d40c2a7e45b6448b2f59b3",
        "572197c6bd2180b7feabbade40f42533804a674e4ef56f2e57e4d07f44e01000",
    ],
};

impl Package {
    /// A line of pip's requirements file.
    fn requirement(&self) -> String {
        let hashes = self
            .hashes
            .iter()
            .map(|hash| format!(" --hash=sha256:{hash}"));
        format!(
            "{}=={}{}\n",
            self.name,
            self.version,
            hashes.collect::<String>()
        )
    }
}

/// Platform tags of the wheels for a system and a processor; none if there are no wheels.
pub(crate) fn platforms(system: &str, processor: &str) -> Option<&'static [&'static str]> {
    match (system, processor) {
        ("linux", "x86_64") => Some(&["manylinux_2_28_x86_64", "manylinux2014_x86_64"]),
        ("linux", "aarch64") => Some(&["manylinux_2_28_aarch64", "manylinux2014_aarch64"]),
        _ => None,
    }
}

/// Packages that lie in one folder.
struct Wheels {
    folder: PathBuf,
    packages: &'static [Package],
    minor: u32,
}

/// The folders of the native library and of the official engine, filled first where they are not
/// there yet.
pub(crate) fn install(parent: &Path, peer: &Python, platforms: &[&str]) -> Result<[PathBuf; 2]> {
    let named = |package: &Package, end: &str| {
        parent.join(format!("{}-{}{end}", package.name, package.version))
    };
    let native = Wheels {
        folder: named(&TOKENSPEED, ""),
        // The library looks for the CUDA runtime here.
        packages: &[TOKENSPEED, CUDA_RUNTIME],
        // Every wheel holds the same kind of library, whatever Python it is for.
        minor: 11,
    };
    let official = Wheels {
        folder: named(&OFFICIAL, &format!("-cp3{}", peer.minor)),
        packages: &[OFFICIAL],
        minor: peer.minor,
    };
    let wheels = [native, official];
    if wheels.iter().any(|wheels| !wheels.folder.exists()) {
        let pip = python::pip(peer, parent)?;
        for wheels in &wheels {
            wheels.install(&pip, platforms)?;
        }
    }
    Ok(wheels.map(|wheels| wheels.folder))
}

impl Wheels {
    fn install(&self, pip: &Python, platforms: &[&str]) -> Result<()> {
        if self.folder.exists() {
            return Ok(());
        }
        // A folder gets its name when it is complete.
        let beside = |end: &str| {
            let mut path = self.folder.clone().into_os_string();
            path.push(end);
            PathBuf::from(path)
        };
        let (partial, requirements) = (beside(".partial"), beside(".txt"));
        if partial.exists() {
            fs::remove_dir_all(&partial)?;
        }
        let lines: String = self.packages.iter().map(Package::requirement).collect();
        fs::write(&requirements, lines)?;
        let names: Vec<&str> = self.packages.iter().map(|package| package.name).collect();
        eprintln!("installing {} with pip", names.join(" and "));
        let mut install = Command::new(&pip.program);
        install
            .args(["-m", "pip", "install", "--no-deps", "--require-hashes"])
            .args(["--only-binary=:all:", "--implementation=cp"])
            .arg(format!("--python-version=3.{}", self.minor))
            .args(platforms.iter().map(|tag| format!("--platform={tag}")))
            .arg("--target")
            .arg(&partial)
            .arg("--requirement")
            .arg(&requirements)
            // Somebody's settings for their own packages don't fit a folder.
            .env("PIP_USER", "0")
            .env("PIP_REQUIRE_VIRTUALENV", "0")
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
        repo::captured(&mut install)?;
        fs::remove_file(&requirements)?;
        fs::rename(&partial, &self.folder)
            .with_context(|| format!("can't name {}", self.folder.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::{CUDA_RUNTIME, MINORS, OFFICIAL, Package, TOKENSPEED, platforms};

    #[test]
    fn a_requirement_names_one_version_and_every_hash_of_it() {
        let package = Package {
            name: "p",
            version: "1.2",
            hashes: &["aa", "bb"],
        };
        assert_eq!(
            package.requirement(),
            "p==1.2 --hash=sha256:aa --hash=sha256:bb\n"
        );
    }

    #[test]
    fn every_wheel_has_one_whole_hash() {
        let wheels = MINORS.len() * 2;
        for (package, count) in [(TOKENSPEED, 2), (CUDA_RUNTIME, 2), (OFFICIAL, wheels)] {
            let mut hashes = package.hashes.to_vec();
            hashes.sort_unstable();
            hashes.dedup();
            assert_eq!(hashes.len(), count, "{}", package.name);
            for hash in hashes {
                assert!(hash.len() == 64 && hash.chars().all(|c| c.is_ascii_hexdigit()));
            }
        }
    }

    #[test]
    fn systems_without_wheels_have_no_platform() {
        assert!(platforms("linux", "x86_64").is_some());
        assert!(platforms("linux", "riscv64").is_none());
        assert!(platforms("macos", "aarch64").is_none());
    }
}
