const MISSING: &str = ": cannot open shared object file";

/// Libraries that the engines need, and where they usually come from.
const SOURCES: &[(&str, &str)] = &[
    (
        "libibverbs.so.1",
        "usually in the system package libibverbs1",
    ),
    (
        "libmlx5.so.1",
        "usually in the system package ibverbs-providers",
    ),
    ("librdmacm.so.1", "usually in the system package librdmacm1"),
    ("libnuma.so.1", "usually in the system package libnuma1"),
    ("libcurl.so.4", "usually in the system package libcurl4"),
    (
        "libcudart.so.13",
        "part of CUDA 13; the Python package nvidia-cuda-runtime has it",
    ),
    (
        "libcuda.so.1",
        "part of the NVIDIA driver; without one, MOONCAKE_PD_CUDA_STUB may name a folder with a stand-in",
    ),
];

/// Where the library that the loader's text misses usually comes from.
pub(crate) fn of(text: &str) -> Option<&'static str> {
    let (missing, _) = text.split_once(MISSING)?;
    let found = SOURCES.iter().find(|(name, _)| *name == missing);
    found.map(|(_, source)| *source)
}

#[cfg(test)]
mod tests {
    use crate::Reason;

    #[test]
    fn a_missing_dependency_is_told_with_its_package() {
        let told = |text: &str| Reason::Loader(text.to_owned()).to_string();
        let text = "libibverbs.so.1: cannot open shared object file: No such file or directory";
        let expected = format!("{text} (usually in the system package libibverbs1)");
        assert_eq!(told(text), expected);
        let text = "libother.so.1: cannot open shared object file: No such file or directory";
        assert_eq!(told(text), text);
        assert_eq!(told("invalid ELF header"), "invalid ELF header");
    }
}
