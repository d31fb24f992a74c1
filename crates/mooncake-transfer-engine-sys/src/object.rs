use std::error::Error;
use std::ffi::c_int;
use std::fmt;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LAZY, RTLD_LOCAL, Symbol};

use crate::{LoadError, Reason};

/// A loaded library, never unloaded.
pub(crate) struct Object {
    path: PathBuf,
    library: ManuallyDrop<Library>,
}

impl Object {
    /// A library whose symbols stay its own. A bare name goes to the loader's search.
    pub(crate) fn open(place: &Path) -> Result<Self, LoadError> {
        Self::load(place, RTLD_LAZY | RTLD_LOCAL)
    }

    /// A library that later ones may bind to.
    pub(crate) fn open_global(place: &Path) -> Result<Self, LoadError> {
        Self::load(place, RTLD_LAZY | RTLD_GLOBAL)
    }

    fn load(place: &Path, flags: c_int) -> Result<Self, LoadError> {
        // SAFETY: the library's initialisers run. It is one that the user installed or named for
        // this use, and it is never unloaded, so no finaliser runs before the process ends.
        let library = unsafe { Library::open(Some(place), flags) };
        library
            .map(|library| Self {
                path: place.to_owned(),
                library: ManuallyDrop::new(library),
            })
            .map_err(|error| LoadError::Open {
                path: place.to_owned(),
                reason: Reason::Loader(text(&error, place)),
            })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The function of that name.
    ///
    /// # Safety
    /// `F` is a function pointer, of the type that the library's symbol has.
    pub(crate) unsafe fn function<F: Copy>(&self, symbol: &'static str) -> Result<F, LoadError> {
        // SAFETY: `F` is the symbol's type, and a function pointer, so `Option` makes room for a
        // symbol whose value is null.
        let found = unsafe { self.library.get::<Option<F>>(symbol) };
        let lifted = found.ok().and_then(Symbol::lift_option);
        lifted.map(|found| *found).ok_or_else(|| LoadError::Symbol {
            path: self.path.clone(),
            symbol,
        })
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Object").field(&self.path).finish()
    }
}

/// What the loader said, which libloading keeps in the error's source, without the place itself.
fn text(error: &libloading::Error, place: &Path) -> String {
    let whole = error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string);
    let rest = place.to_str().and_then(|place| whole.strip_prefix(place));
    match rest.and_then(|rest| rest.strip_prefix(": ")) {
        Some(rest) => rest.to_owned(),
        None => whole,
    }
}
