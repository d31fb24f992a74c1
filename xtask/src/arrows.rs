//! Which crate of this repository may depend on which.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

use crate::repo::Repo;

const LAYOUT: &str = "mooncake-pd-layout";
const PLAN: &str = "mooncake-pd-plan";
const CONNECTOR: &str = "mooncake-pd-connector";
const RDMA: &str = "mooncake-pd-rdma";
const SYS: &str = "mooncake-transfer-engine-sys";
const CLI: &str = "mooncake-pd";

/// The whole of the crate graph: a package and what it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    (LAYOUT, &[]),
    (PLAN, &[LAYOUT]),
    (CONNECTOR, &[LAYOUT, PLAN]),
    (SYS, &[]),
    (RDMA, &[LAYOUT, PLAN, SYS]),
    (CLI, &[LAYOUT, PLAN, RDMA]),
    ("xtask", &[]),
    ("nostd-check", &[LAYOUT, PLAN, CONNECTOR]),
    ("integrator-check", &[LAYOUT, PLAN]),
    ("mooncake-pd-fuzz", &[LAYOUT, PLAN, CONNECTOR, RDMA]),
];

/// Packages that never hold unsafe code and never link std.
const PURE: &[&str] = &[LAYOUT, PLAN, CONNECTOR];

/// Packages outside the workspace that point into it.
const OUTSIDE: &[&str] = &["checks/nostd", "checks/integrator", "fuzz"];

/// Checks every arrow of the checkout, and what the pure crates promise.
pub(crate) fn check(repo: &Repo) -> Result<()> {
    let workspace = read(&repo.path("Cargo.toml"))?;
    let mut seen = Vec::new();
    for package in &workspace.packages {
        check_arrows(package)?;
        if PURE.contains(&package.name.as_str()) {
            check_pure(package)?;
            seen.push(package.name.as_str());
        }
    }
    ensure!(
        seen.len() == PURE.len(),
        "pure crates {PURE:?} expected, {seen:?} found"
    );
    for folder in OUTSIDE {
        for package in &read(&repo.path(folder).join("Cargo.toml"))?.packages {
            check_arrows(package)?;
        }
    }
    Ok(())
}

fn read(manifest: &Path) -> Result<Metadata> {
    MetadataCommand::new()
        .manifest_path(manifest)
        .no_deps()
        .exec()
        .with_context(|| format!("can't read {}", manifest.display()))
}

fn check_arrows(package: &Package) -> Result<()> {
    let (_, allowed) = ARROWS
        .iter()
        .find(|(name, _)| package.name == *name)
        .with_context(|| format!("package {} is not in the crate graph", package.name))?;
    for dependency in &package.dependencies {
        if dependency.path.is_none() {
            continue;
        }
        // A crate's own integration tests switch its `testing` feature on by depending on itself.
        let itself =
            dependency.kind == DependencyKind::Development && dependency.name == *package.name;
        if !itself && !allowed.contains(&dependency.name.as_str()) {
            bail!(
                "{} may depend on {allowed:?} of this repository, not on {} ({})",
                package.name,
                dependency.name,
                dependency.kind
            );
        }
    }
    Ok(())
}

fn check_pure(package: &Package) -> Result<()> {
    let root = package
        .targets
        .iter()
        .find(|target| target.is_lib())
        .with_context(|| format!("{} has no library", package.name))?;
    let text = std::fs::read_to_string(&root.src_path)?;
    for attribute in ["#![no_std]", "#![forbid(unsafe_code)]"] {
        ensure!(
            text.lines().any(|line| line == attribute),
            "{} lacks {attribute}",
            root.src_path
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cargo_metadata::PackageName;

    use super::{check_arrows, read};

    fn package(name: &str) -> cargo_metadata::Package {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
        let metadata = read(&manifest).unwrap();
        let found = metadata.packages.iter().find(|p| p.name == name);
        found.unwrap().clone()
    }

    #[test]
    fn an_arrow_against_the_graph_is_refused_whatever_its_kind() {
        let mut layout = package("mooncake-pd-layout");
        check_arrows(&layout).unwrap();
        let rdma = package("mooncake-pd-rdma");
        let plan = rdma
            .dependencies
            .iter()
            .filter(|d| d.name == "mooncake-pd-plan");
        let plan: Vec<_> = plan.cloned().collect();
        assert!(plan.len() >= 2, "a normal and a development dependency");
        let own = layout.dependencies.clone();
        for arrow in plan {
            layout.dependencies = own.clone();
            layout.dependencies.push(arrow);
            check_arrows(&layout).unwrap_err();
        }
    }

    #[test]
    fn a_crate_may_depend_on_itself_in_its_tests_only() {
        let mut layout = package("mooncake-pd-layout");
        for dependency in &mut layout.dependencies {
            dependency.kind = cargo_metadata::DependencyKind::Normal;
        }
        check_arrows(&layout).unwrap_err();
    }

    #[test]
    fn a_package_outside_the_graph_is_refused() {
        let mut layout = package("mooncake-pd-layout");
        layout.name = PackageName::new("mooncake-pd-extra".to_owned());
        check_arrows(&layout).unwrap_err();
    }
}
