//! The checkout this program was built in, and commands run inside it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A checkout of this repository.
pub(crate) struct Repo {
    root: PathBuf,
}

impl Repo {
    /// Finds the checkout from the place of this crate's manifest.
    pub(crate) fn locate() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("xtask has no parent folder")?;
        Ok(Self {
            root: root.to_owned(),
        })
    }

    /// A path given relative to the top of the checkout.
    pub(crate) fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    /// The toolchain's own `cargo`, run at the top of the checkout.
    pub(crate) fn cargo<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        self.command(cargo, args)
    }

    /// Any program, run at the top of the checkout.
    pub(crate) fn command<S: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).args(args);
        command
    }
}

/// Runs a command, which writes to our own output, and fails if it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("can't start {command:?}"))?;
    if !status.success() {
        bail!("{status} from {command:?}");
    }
    Ok(())
}

/// Runs a command without input, and gives what it printed; its errors are told only if it fails.
pub(crate) fn captured(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("can't start {command:?}"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("{} from {command:?}\n{printed}{errors}", output.status);
    }
    Ok(printed)
}

/// Whether a command starts and succeeds; its output is discarded.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
