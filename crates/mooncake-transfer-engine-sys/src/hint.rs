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
