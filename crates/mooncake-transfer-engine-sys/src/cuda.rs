use std::path::Path;

use crate::LoadError;
use crate::environment::Environment;
use crate::object::Object;

/// The environment variable that names a folder with a stand-in for `libcuda.so.1`.
///
/// An engine built with CUDA is linked against NVIDIA's driver and does not load without it,
/// although host memory over TCP never calls it. On a machine without a driver, an empty library
/// of that name will do; the folder is looked at only when the loader finds no real one:
///
/// ```sh
/// cc -shared -Wl,-soname,libcuda.so.1 -o "$MOONCAKE_PD_CUDA_STUB/libcuda.so.1" -x c /dev/null
/// ```
pub const CUDA_STUB_ENV: &str = "MOONCAKE_PD_CUDA_STUB";

const DRIVER: &str = "libcuda.so.1";
const RUNTIME: &str = "libcudart.so.13";

/// Where Python's CUDA packages put the runtime, beside the engine's package.
const RUNTIME_FOLDERS: [&str; 2] = ["nvidia/cu13/lib", "nvidia/cuda_runtime/lib"];

/// Loads the stand-in for the driver where there is none, so that the loader finds it by its name.
pub(crate) fn stand_in(environment: &Environment) -> Result<(), LoadError> {
    let Some(folder) = environment.variable(CUDA_STUB_ENV) else {
        return Ok(());
    };
    if Object::open_global(Path::new(DRIVER)).is_ok() {
        return Ok(());
    }
    let path = Path::new(folder).join(DRIVER);
    if !path.exists() {
        let variable = CUDA_STUB_ENV;
        return Err(LoadError::Variable { variable, path });
    }
    Object::open_global(&path).map(drop)
}

/// Loads CUDA's runtime by its name or from beside the engine's package. When it is nowhere the
/// loader says so as the engine is opened.
pub(crate) fn runtime(engine: &Path) {
    if Object::open_global(Path::new(RUNTIME)).is_ok() {
        return;
    }
    let Some(packages) = engine.parent().and_then(Path::parent) else {
        return;
    };
    let mut places = RUNTIME_FOLDERS
        .iter()
        .map(|folder| packages.join(folder).join(RUNTIME));
    let _found = places.any(|place| Object::open_global(&place).is_ok());
}
