use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::{LoadError, Reason};

/// A library to look for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search {
    /// File name.
    pub(crate) name: &'static str,
    /// The environment variable that names its path.
    pub(crate) variable: &'static str,
}

impl Search {
    /// Loads the library from the variable's path if it is set, else from the first place where
    /// it loads.
    ///
    /// A library that loads and turns out to be the wrong one ends the search: its initialisers
    /// ran, and a second copy beside it may abort the process over what both register.
    pub(crate) fn run<T>(
        self,
        environment: &Environment,
        places: impl IntoIterator<Item = PathBuf>,
        load: impl Fn(&Path) -> Result<T, LoadError>,
    ) -> Result<T, LoadError> {
        if let Some(named) = environment.variable(self.variable) {
            let path = with_folder(Path::new(named));
            if !path.exists() {
                let variable = self.variable;
                return Err(LoadError::Variable { variable, path });
            }
            return load(&path);
        }
        let mut tried = Vec::new();
        // The loader's own search first: a bare name.
        for place in [PathBuf::from(self.name)].into_iter().chain(places) {
            let bare = place.as_os_str() == self.name;
            if !bare && !place.exists() {
                tried.push((place, Reason::NoFile));
                continue;
            }
            match load(&place) {
                Err(LoadError::Open { path, reason }) => tried.push((path, reason)),
                other => return other,
            }
        }
        Err(LoadError::NotFound {
            what: self.name,
            variable: self.variable,
            tried,
        })
    }
}

/// The path as the loader takes it for a path: without a slash it would search for a name.
pub(crate) fn with_folder(path: &Path) -> PathBuf {
    if path.components().count() > 1 {
        path.to_owned()
    } else {
        Path::new(".").join(path)
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::Search;
    use crate::environment::Environment;
    use crate::{LoadError, Reason};

    const SEARCH: Search = Search {
        name: "libnone.so",
        variable: crate::official::LIBRARY_ENV,
    };

    fn refuse(place: &Path) -> Result<PathBuf, LoadError> {
        Err(LoadError::Open {
            path: place.to_owned(),
            reason: Reason::Loader("refused".to_owned()),
        })
    }

    #[test]
    fn every_place_is_listed_with_its_reason_and_the_variable_to_set() {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let places = [here.join("libnone.so"), here.join("Cargo.toml")];
        let environment = Environment::of(&here, &[]);
        let error = SEARCH
            .run(&environment, places.clone(), refuse)
            .unwrap_err();
        let refused = Reason::Loader("refused".to_owned());
        let [absent, present] = places;
        let expected = LoadError::NotFound {
            what: "libnone.so",
            variable: "MOONCAKE_TRANSFER_ENGINE_LIB",
            tried: vec![
                (PathBuf::from("libnone.so"), refused.clone()),
                (absent.clone(), Reason::NoFile),
                (present.clone(), refused),
            ],
        };
        assert_eq!(error, expected);
        let text = error.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "libnone.so was not found; tried:",
                "  libnone.so: refused",
                &format!("  {}: no such file", absent.display()),
                &format!("  {}: refused", present.display()),
                "to fix it, set MOONCAKE_TRANSFER_ENGINE_LIB to the path of the library",
            ]
        );
    }

    #[test]
    fn a_set_variable_leaves_no_other_place() {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let file = here.join("Cargo.toml");
        let environment = Environment::of(&here, &[(SEARCH.variable, &file)]);
        let loads = |place: &Path| Ok(place.to_owned());
        let others = || [here.join("src/lib.rs")];
        assert_eq!(SEARCH.run(&environment, others(), loads), Ok(file.clone()));
        assert_eq!(
            SEARCH.run(&environment, others(), refuse),
            refuse(&file),
            "its failure is not passed over"
        );
        let path = here.join("absent");
        let environment = Environment::of(&here, &[(SEARCH.variable, &path)]);
        let variable = SEARCH.variable;
        assert_eq!(
            SEARCH.run(&environment, others(), loads),
            Err(LoadError::Variable { variable, path })
        );
    }

    #[test]
    fn a_library_that_loaded_and_is_the_wrong_one_ends_the_search() {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let wrong = |place: &Path| -> Result<PathBuf, LoadError> {
            Err(LoadError::Symbol {
                path: place.to_owned(),
                symbol: "create",
            })
        };
        let places = [here.join("Cargo.toml")];
        let environment = Environment::of(&here, &[]);
        let error = SEARCH.run(&environment, places, wrong).unwrap_err();
        assert_eq!(error, wrong(Path::new("libnone.so")).unwrap_err());
    }
}
