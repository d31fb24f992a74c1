use std::ffi::c_int;
use std::path::Path;
use std::sync::Arc;

use super::functions::{ABI_VERSION, Functions};
use crate::LoadError;
use crate::cuda;
use crate::environment::Environment;
use crate::object::Object;
use crate::search::{Search, with_folder};
use crate::site_packages;

/// The environment variable that names the library's path. When it is set, no other place is tried.
pub const LIBRARY_ENV: &str = "TOKENSPEED_TRANSFER_ENGINE_LIB";

/// The library's file name.
pub const LIBRARY_NAME: &str = "libtokenspeed_transfer_engine.so";

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
    /// by the loader's own search and in the folder `mooncake` of Python's site-packages, where
    /// the package `tokenspeed_mooncake` puts it (`VIRTUAL_ENV`, `CONDA_PREFIX`, `PYTHONPATH`,
    /// that of the `python3` on `PATH`, the user's, the system's).
    ///
    /// # Errors
    /// [`LoadError::NotFound`] lists every place; otherwise those of `open`, which end the search
    /// once a library loaded.
    pub fn find() -> Result<Self, LoadError> {
        Self::find_in(&Environment::of_process())
    }

    /// Loads the library from a path.
    ///
    /// CUDA's runtime 13 is loaded first: by its name, or from Python's CUDA packages beside the
    /// library's own. On a machine without a driver, [`crate::CUDA_STUB_ENV`] may name a folder
    /// with a stand-in.
    ///
    /// # Errors
    /// [`LoadError::Open`], [`LoadError::AbiVersion`], [`LoadError::Symbol`], or
    /// [`LoadError::Variable`] when there is no stand-in where the variable says.
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
        let search = Search {
            name: LIBRARY_NAME,
            variable: LIBRARY_ENV,
        };
        let packages = site_packages::folders(environment).into_iter();
        let places = packages.map(|folder| folder.join("mooncake").join(LIBRARY_NAME));
        search.run(environment, places, |place| Self::load(place, environment))
    }

    fn load(place: &Path, environment: &Environment) -> Result<Self, LoadError> {
        cuda::stand_in(environment)?;
        cuda::runtime(place);
        let object = Object::open(place)?;
        check_version(&object)?;
        let functions = Functions::load(&object)?;
        Ok(Self(Arc::new(Loaded { object, functions })))
    }
}

/// Another version may lack functions or give them other arguments, so this one comes first.
fn check_version(object: &Object) -> Result<(), LoadError> {
    type AbiVersion = unsafe extern "C" fn() -> c_int;
    // SAFETY: the header's type of this symbol, the same in all versions.
    let abi_version = unsafe { object.function::<AbiVersion>("ts_mooncake_abi_version") }?;
    // SAFETY: takes nothing and needs no engine.
    let found = unsafe { abi_version() };
    if found == ABI_VERSION {
        return Ok(());
    }
    Err(LoadError::AbiVersion {
        path: object.path().to_owned(),
        found,
        expected: ABI_VERSION,
    })
}
