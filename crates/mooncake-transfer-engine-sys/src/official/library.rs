use std::env::consts::ARCH;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Functions;
use crate::LoadError;
use crate::cuda;
use crate::environment::Environment;
use crate::object::Object;
use crate::search::{Search, with_folder};
use crate::site_packages;

/// The environment variable that names the library's path. When it is set, no other place is tried.
pub const LIBRARY_ENV: &str = "MOONCAKE_TRANSFER_ENGINE_LIB";

/// The library's file name.
pub const LIBRARY_NAME: &str = "libtransfer_engine.so";

/// The loaded library. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Library(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    object: Object,
    functions: Functions,
}

impl Library {
    /// Looks for the library: where [`LIBRARY_ENV`] says and nowhere else if it is set, otherwise
    /// by the loader's own search (`LD_LIBRARY_PATH`, the system's cache), in the folder
    /// `mooncake` of Python's site-packages (`VIRTUAL_ENV`, `CONDA_PREFIX`, `PYTHONPATH`, that of
    /// the `python3` on `PATH`, the user's, the system's), and in the system's library folders.
    ///
    /// # Errors
    /// [`LoadError::NotFound`] lists every place. A library that loads but lacks a function ends
    /// the search with [`LoadError::Symbol`].
    pub fn find() -> Result<Self, LoadError> {
        Self::find_in(&Environment::of_process())
    }

    /// Loads the library from a path. One built with CUDA needs NVIDIA's driver, or on a machine
    /// without one [`crate::CUDA_STUB_ENV`].
    ///
    /// # Errors
    /// [`LoadError::Open`], [`LoadError::Symbol`], or [`LoadError::Variable`] when there is no
    /// stand-in where that variable says.
    pub fn open(path: &Path) -> Result<Self, LoadError> {
        Self::load(&with_folder(path), &Environment::of_process())
    }

    /// What it can do.
    pub fn functions(&self) -> &Functions {
        &self.0.functions
    }

    /// Where it was loaded from: a bare name if the loader found it.
    pub fn path(&self) -> &Path {
        self.0.object.path()
    }

    pub(crate) fn find_in(environment: &Environment) -> Result<Self, LoadError> {
        let packages = site_packages::folders(environment).into_iter();
        let packages = packages.map(|folder| folder.join("mooncake"));
        let folders = packages.chain(system_folders(environment.root()));
        let search = Search {
            name: LIBRARY_NAME,
            variable: LIBRARY_ENV,
        };
        let places = folders.map(|folder| folder.join(LIBRARY_NAME));
        search.run(environment, places, |place| Self::load(place, environment))
    }

    fn load(place: &Path, environment: &Environment) -> Result<Self, LoadError> {
        cuda::stand_in(environment)?;
        let object = Object::open(place)?;
        let functions = Functions::load(&object)?;
        Ok(Self(Arc::new(Loaded { object, functions })))
    }
}

fn system_folders(root: &Path) -> Vec<PathBuf> {
    let multiarch = format!("usr/lib/{ARCH}-linux-gnu");
    ["usr/local/lib", "usr/local/lib64", "usr/lib", "usr/lib64"]
        .into_iter()
        .chain([multiarch.as_str()])
        .map(|folder| root.join(folder))
        .collect()
}
