//! Pythons of this machine: one that imports the official engine, one that has pip.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::apt::Administrator;
use super::wheels::MINORS;
use crate::repo;

/// Names the peer, when somebody wants a certain one.
const CHOSEN: &str = "MOONCAKE_PD_PEER_PYTHON";

/// Printed by a Python of itself: version, kind, whether pip and ensurepip are there, and its path.
const PROBE: &str = "
import sys, sysconfig
from importlib.util import find_spec
plain = sys.implementation.name == 'cpython' and not sysconfig.get_config_var('Py_GIL_DISABLED')
print(*sys.version_info[:2], int(plain), int(bool(find_spec('pip'))), int(bool(find_spec('ensurepip'))), sys.executable)
";

/// A Python 3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Python {
    pub(crate) program: PathBuf,
    pub(crate) minor: u32,
    /// `CPython` with its global lock, for which wheels are made.
    plain: bool,
    has_pip: bool,
    has_ensurepip: bool,
}

impl Python {
    fn probe(program: &Path) -> Option<Self> {
        let mut command = Command::new(program);
        let output = repo::captured(command.args(["-c", PROBE])).ok()?;
        Self::parse(&output)
    }

    fn parse(output: &str) -> Option<Self> {
        let mut words = output.trim().splitn(6, ' ');
        let mut number = || words.next()?.parse::<u32>().ok();
        let (major, minor) = (number()?, number()?);
        let (plain, pip, ensurepip) = (number()?, number()?, number()?);
        let program = words.next().filter(|path| !path.is_empty())?;
        (major == 3).then(|| Self {
            program: program.into(),
            minor,
            plain: plain == 1,
            has_pip: pip == 1,
            has_ensurepip: ensurepip == 1,
        })
    }

    fn has_wheels(&self) -> bool {
        self.plain && MINORS.contains(&self.minor)
    }

    /// Whether another is the same program with the same packages; an environment shares the first alone.
    fn is(&self, other: &Self) -> bool {
        let file = |python: &Self| fs::canonicalize(&python.program).ok();
        let tools = |python: &Self| (python.has_pip, python.has_ensurepip);
        tools(self) == tools(other) && file(self) == file(other)
    }
}

/// The Python that imports the official engine.
pub(crate) fn peer() -> Result<Python> {
    if let Some(chosen) = env::var_os(CHOSEN).filter(|program| !program.is_empty()) {
        return Python::probe(Path::new(&chosen))
            .filter(Python::has_wheels)
            .with_context(|| {
                let chosen = chosen.display();
                format!(
                    "{CHOSEN} is {chosen}, which is no CPython of {}",
                    versions()
                )
            });
    }
    let mut found = all(Python::has_wheels);
    if last_that(&found, Python::has_wheels).is_none() && apt_get("python3") {
        found = all(Python::has_wheels);
    }
    last_that(&found, Python::has_wheels).with_context(|| {
        format!(
            "Mooncake's wheels are for Python {}; found here: {}; install one of those versions, or name its \
             program in {CHOSEN}",
            versions(),
            described(&found)
        )
    })
}

/// A Python with pip, which installs packages for any other: the peer, another one, or an
/// environment made for it in `folder`.
pub(crate) fn pip(peer: &Python, folder: &Path) -> Result<Python> {
    let has_pip = |python: &Python| python.has_pip;
    if has_pip(peer) {
        return Ok(peer.clone());
    }
    let mut found = all(has_pip);
    if last_that(&found, has_pip).is_none() {
        let maker = found.iter().find(|python| python.has_ensurepip);
        if let Some(maker) = maker {
            return environment(maker, &folder.join("python"));
        }
        if apt_get("python3-pip") {
            found = all(has_pip);
        }
    }
    last_that(&found, has_pip).with_context(|| {
        format!(
            "no Python here has pip or ensurepip: {}; install Debian's python3-pip, or pip for one of these",
            described(&found)
        )
    })
}

fn environment(maker: &Python, folder: &Path) -> Result<Python> {
    let mut venv = Command::new(&maker.program);
    repo::captured(venv.args(["-m", "venv", "--clear"]).arg(folder))?;
    let made = Python::probe(&folder.join("bin/python"));
    let Some(made) = made.filter(|python| python.has_pip) else {
        bail!("{} has no pip", folder.display());
    };
    Ok(made)
}

/// Whether a package could be installed.
fn apt_get(package: &str) -> bool {
    let Some(administrator) = Administrator::find() else {
        return false;
    };
    eprintln!("installing {package} with apt-get");
    let installed = administrator.install(&[package]);
    if let Err(error) = &installed {
        eprintln!("{error:#}");
    }
    installed.is_ok()
}

fn last_that(found: &[Python], fits: impl Fn(&Python) -> bool) -> Option<Python> {
    found.last().filter(|python| fits(python)).cloned()
}

/// Pythons of this machine up to the first that fits, which is then the last.
fn all(fits: impl Fn(&Python) -> bool) -> Vec<Python> {
    until(
        programs()
            .iter()
            .filter_map(|program| Python::probe(program)),
        fits,
    )
}

fn until(pythons: impl Iterator<Item = Python>, fits: impl Fn(&Python) -> bool) -> Vec<Python> {
    let mut found: Vec<Python> = Vec::new();
    for python in pythons {
        if found.iter().any(|known| known.is(&python)) {
            continue;
        }
        let done = fits(&python);
        found.push(python);
        if done {
            break;
        }
    }
    found
}

fn versions() -> String {
    MINORS.map(|minor| format!("3.{minor}")).join(", ")
}

fn described(found: &[Python]) -> String {
    if found.is_empty() {
        return "none".to_owned();
    }
    let each = found
        .iter()
        .map(|python| format!("{} (3.{})", python.program.display(), python.minor));
    each.collect::<Vec<_>>().join(", ")
}

/// Files on the search path and in the usual folders that are named like a Python 3.
fn programs() -> Vec<PathBuf> {
    let mut names = vec!["python3".to_owned()];
    names.extend(MINORS.iter().rev().map(|minor| format!("python3.{minor}")));
    let mut found = Vec::new();
    for folder in folders() {
        let files = names.iter().map(|name| folder.join(name));
        found.extend(files.filter(|path| path.is_file()));
    }
    found
}

fn folders() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&path).collect();
    folders.extend(["/usr/local/bin", "/usr/bin", "/opt/conda/bin"].map(PathBuf::from));
    let home = env::var_os("HOME").filter(|home| !home.is_empty());
    if let Some(home) = home.map(PathBuf::from) {
        folders.extend([".local/bin", "miniconda3/bin"].map(|folder| home.join(folder)));
        for many in [".pyenv/versions", ".local/share/uv/python"] {
            let versions = fs::read_dir(home.join(many))
                .into_iter()
                .flatten()
                .flatten();
            let mut versions: Vec<_> = versions.map(|version| version.path().join("bin")).collect();
            versions.sort_unstable();
            folders.extend(versions);
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Python, described, last_that, until};

    fn python(minor: u32, pip: bool, ensurepip: bool) -> Python {
        Python {
            program: PathBuf::from("/"),
            minor,
            plain: true,
            has_pip: pip,
            has_ensurepip: ensurepip,
        }
    }

    #[test]
    fn a_python_tells_what_it_is() {
        let mut expected = python(11, true, false);
        expected.program = PathBuf::from("/a b/python3");
        assert_eq!(Python::parse("3 11 1 1 0 /a b/python3\n"), Some(expected));
        for other in [
            "",
            "2 7 1 1 1 /bin/python",
            "3 11 1 1 0 ",
            "3 11 1 1",
            "no python",
        ] {
            assert_eq!(Python::parse(other), None, "{other}");
        }
    }

    #[test]
    fn only_some_pythons_have_wheels() {
        let with = |minor| python(minor, true, true).has_wheels();
        assert!(with(10) && with(13) && !with(9) && !with(14));
        let mut unlocked = python(13, true, true);
        unlocked.plain = false;
        assert!(!unlocked.has_wheels());
    }

    #[test]
    fn the_search_ends_at_the_first_that_fits_and_looks_at_each_program_once() {
        let some = [
            (9, true, true),
            (9, true, true),
            (12, false, true),
            (11, false, false),
        ];
        let some = some.map(|(minor, pip, ensurepip)| python(minor, pip, ensurepip));
        let found = until(some.clone().into_iter(), Python::has_wheels);
        assert_eq!(found, [some[0].clone(), some[2].clone()]);
        assert_eq!(last_that(&found, Python::has_wheels), Some(some[2].clone()));
        assert_eq!(last_that(&found[..1], Python::has_wheels), None);
        assert_eq!(last_that(&[], Python::has_wheels), None);
    }

    #[test]
    fn what_was_found_is_named_with_its_version() {
        assert_eq!(described(&[]), "none");
        assert_eq!(described(&[python(9, true, true)]), "/ (3.9)");
    }
}
