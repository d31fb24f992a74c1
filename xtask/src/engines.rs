//! Real engines of Mooncake: what tests need of them, installed into `target/engines`.

mod apt;
mod exports;
mod libraries;
mod python;
mod wheels;

use std::env::consts;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

pub(crate) use self::exports::Exports;
use self::libraries::Libraries;
use self::python::Python;
use crate::repo::{self, Repo};

/// Everything that this module writes is below it.
const FOLDER: &str = "target/engines";

/// Arguments of `cargo xtask engines`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Put missing system libraries below target/ instead of installing them
    #[arg(long)]
    unpack: bool,
}

/// Installs, and prints what a shell has to know for `cargo test` by hand.
pub(crate) fn run(repo: &Repo, args: &Args) -> Result<()> {
    print!("{}", install(repo, args.unpack)?.shell());
    Ok(())
}

/// What an earlier run has installed; nothing when there was none.
pub(crate) fn installed(repo: &Repo) -> Result<Exports> {
    Exports::read(&repo.path(FOLDER))
}

/// Installs whatever is not there yet, and tries it.
pub(crate) fn install(repo: &Repo, unpack: bool) -> Result<Exports> {
    let Some(platforms) = wheels::platforms(consts::OS, consts::ARCH) else {
        eprintln!(
            "Mooncake publishes no engine for {} on {}: tests that need one will say that they are skipped",
            consts::OS,
            consts::ARCH
        );
        return Ok(Exports::default());
    };
    let folder = repo.path(FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
    // Two runs at once would take away each other's half-made folders.
    let lock = File::create(folder.join("lock"))?;
    lock.lock()?;
    let peer = python::peer()?;
    let [native, official] = wheels::install(&folder, &peer, platforms)?;
    let library = native.join("mooncake/libtokenspeed_transfer_engine.so");
    let needing = [library.clone(), official.join("mooncake/engine.so")];
    let system = Libraries::provide(&folder, &needing, unpack)?;

    let mut exports = Exports::new(&folder);
    exports.set("TOKENSPEED_TRANSFER_ENGINE_LIB", &library)?;
    exports.set("MOONCAKE_PD_PEER_PYTHON", &peer.program)?;
    exports.set("MOONCAKE_PD_PEER_PATH", &official)?;
    exports.set("MOONCAKE_PD_REQUIRE_ENGINES", Path::new("1"))?;
    if !system.driver {
        exports.set("MOONCAKE_PD_CUDA_STUB", &cuda_stub(&folder)?)?;
    }
    if !system.folders.is_empty() {
        exports.set_search_path(&system.folders)?;
    }
    check(repo, &peer, &exports)?;
    exports.write()?;
    Ok(exports)
}

/// An empty `libcuda.so.1`: the engine is linked to the driver's, and uses it for GPU memory only.
fn cuda_stub(folder: &Path) -> Result<PathBuf> {
    let stub = folder.join("cuda-stub");
    fs::create_dir_all(&stub)?;
    let (library, partial) = (stub.join("libcuda.so.1"), stub.join("partial"));
    if !library.exists() {
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-nostdlib", "-Wl,-soname,libcuda.so.1", "-o"]);
        repo::captured(cc.arg(&partial).args(["-x", "c", "/dev/null"]))?;
        fs::rename(&partial, &library)?;
    }
    Ok(stub)
}

/// Both engines load, the native one has the interface we know, and two peers move bytes.
fn check(repo: &Repo, peer: &Python, exports: &Exports) -> Result<()> {
    let script = |name: &str| repo.path("xtask/src/engines").join(name);
    let mut native = Command::new(&peer.program);
    native
        .arg(script("native_library.py"))
        .arg(exports.get("TOKENSPEED_TRANSFER_ENGINE_LIB"))
        .arg(exports.get("MOONCAKE_PD_CUDA_STUB"));
    let mut peers = Command::new(&peer.program);
    peers
        .arg(script("two_peers.py"))
        .env("PYTHONPATH", exports.get("MOONCAKE_PD_PEER_PATH"));
    for command in [&mut native, &mut peers] {
        exports.apply(command);
        repo::captured(command.env("PYTHONDONTWRITEBYTECODE", "1"))
            .with_context(|| broken(&repo.path(FOLDER)))?;
    }
    Ok(())
}

fn broken(what: &Path) -> String {
    let what = what.display();
    format!("{what} doesn't work; without the folder {FOLDER} the next run installs engines again")
}
