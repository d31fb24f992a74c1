//! Cargo subcommands that this repository needs, built from crates.io into `target/tools`.

use std::path::PathBuf;

use anyhow::Result;

use crate::repo::{Repo, run};

/// A cargo subcommand at a fixed version.
pub(crate) struct Tool {
    name: &'static str,
    version: &'static str,
}

/// Licences, bans and sources of dependencies.
pub(crate) const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
};

/// Coverage-guided fuzzing.
pub(crate) const FUZZ: Tool = Tool {
    name: "cargo-fuzz",
    version: "0.13.2",
};

/// Mutation testing.
pub(crate) const MUTANTS: Tool = Tool {
    name: "cargo-mutants",
    version: "27.1.0",
};

impl Tool {
    /// The program, built first when it is not there yet.
    pub(crate) fn install(&self, repo: &Repo) -> Result<PathBuf> {
        // A folder per version, so that a new version is never mistaken for the old one.
        let root = repo.path(format!("target/tools/{}-{}", self.name, self.version));
        let program = root.join("bin").join(self.name);
        if !program.exists() {
            let mut install =
                repo.cargo(["install", "--locked", "--debug", "--root"].map(PathBuf::from));
            install
                .arg(&root)
                .args([self.name, "--version", self.version])
                .arg("--target-dir")
                .arg(repo.path("target/tools/build"))
                // They run for seconds; building them quickly matters more than their speed.
                .env("CARGO_PROFILE_DEV_DEBUG", "0");
            run(&mut install)?;
        }
        Ok(program)
    }
}
