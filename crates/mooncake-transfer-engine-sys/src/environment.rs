use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What a search looks at: variables, and the root of the file system.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    variables: Vec<(&'static str, OsString)>,
    root: PathBuf,
}

impl Environment {
    const READ: &[&str] = &[
        crate::official::LIBRARY_ENV,
        crate::tokenspeed::LIBRARY_ENV,
        crate::CUDA_STUB_ENV,
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "PYTHONPATH",
        "PATH",
        "HOME",
    ];

    pub(crate) fn of_process() -> Self {
        let read = Self::READ.iter();
        Self {
            variables: read
                .filter_map(|name| Some((*name, env::var_os(name)?)))
                .collect(),
            root: PathBuf::from("/"),
        }
    }

    /// The value of a variable that is set and not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.variables.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, value)| value.as_os_str())
            .filter(|value| !value.is_empty())
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }
}

#[cfg(test)]
impl Environment {
    pub(crate) fn of(root: &Path, variables: &[(&'static str, &Path)]) -> Self {
        let variables = variables.iter();
        Self {
            variables: variables
                .map(|(name, value)| (*name, value.as_os_str().to_owned()))
                .collect(),
            root: root.to_owned(),
        }
    }
}
