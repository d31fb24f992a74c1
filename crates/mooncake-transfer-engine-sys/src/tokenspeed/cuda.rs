use std::path::Path;

use crate::LoadError;
use crate::environment::Environment;
use crate::object::Object;

/// The environment variable that names a folder with a stand-in for `libcuda.so.1`.
///
/// The library is linked against NVIDIA's driver and does not load without it, although host
/// memory over TCP never calls it. On a machine without a driver, an empty library of that name
/// will do; the folder is looked at only when the loader finds no real one:
///
/// ```sh
/// cc -shared -Wl,-soname,libcuda.so.1 -o "$MOONCAKE_PD_CUDA_STUB/libcuda.so.1" -x c /dev/null
/// ```
pub const CUDA_STUB_ENV: &str = "MOONCAKE_PD_CUDA_STUB";

const RUNTIME: &str = "libcudart.so.13";
const DRIVER: &str = "libcuda.so.1";

/// Where Python's CUDA packages put the runtime, beside the engine's package.
const RUNTIME_FOLDERS: [&str; 2] = ["nvidia/cu13/lib", "nvidia/cuda_runtime/lib"];

/// Loads what the engine is linked against, so that the loader finds it by its name.
///
/// A runtime that is nowhere is no error here: the loader then names it when the engine is opened.
pub(super) fn preload(engine: &Path, environment: &Environment) -> Result<(), LoadError> {
    if Object::open_global(Path::new(DRIVER)).is_err()
        && let Some(folder) = environment.variable(CUDA_STUB_ENV)
    {
        let path = Path::new(folder).join(DRIVER);
        if !path.exists() {
            let variable = CUDA_STUB_ENV;
            return Err(LoadError::Variable { variable, path });
        }
        Object::open_global(&path)?;
    }
    if Object::open_global(Path::new(RUNTIME)).is_err()
        && let Some(packages) = engine.parent().and_then(Path::parent)
    {
        let mut places = RUNTIME_FOLDERS
            .iter()
            .map(|folder| packages.join(folder).join(RUNTIME));
        let _loaded = places.any(|place| Object::open_global(&place).is_ok());
    }
    Ok(())
}
