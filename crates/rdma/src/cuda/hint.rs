//! What to do about errors of the driver.

use std::fmt;

/// Numbers of the driver (`cuda.h`), and what usually helps.
const HINTS: &[(i64, &str)] = &[
    (
        3,
        "the process was forked after CUDA was started; start workers with `spawn`, or open the device after the fork",
    ),
    (4, "the process is ending"),
    (
        34,
        "this is the toolkit's stub of the driver; take its folder `stubs` out of LD_LIBRARY_PATH",
    ),
    (
        46,
        "the device is busy or in exclusive mode; `nvidia-smi -q -d COMPUTE` shows its compute mode",
    ),
    (
        400,
        "the stream or event is not one of this device, or was destroyed",
    ),
    (
        700,
        "an earlier kernel or copy of this process broke the context; only a new process helps, and `compute-sanitizer` finds the culprit",
    ),
    (
        802,
        "the system is still starting, or nvidia-fabricmanager is not running",
    ),
    (
        803,
        "the driver's library and kernel module differ; reboot after an upgrade, or take a `compat` folder out of LD_LIBRARY_PATH",
    ),
    (
        804,
        "the folder `compat` of a CUDA package comes before the driver, and this device does not take it; take it out of LD_LIBRARY_PATH",
    ),
    (
        900,
        "a graph is being captured from the stream; take the fence outside of the capture",
    ),
    (
        901,
        "a graph was being captured from the stream; take the fence outside of the capture",
    ),
    (
        999,
        "see the kernel's log for `NVRM`, and whether `nvidia-smi` works",
    ),
];

/// Prints what usually helps against that number, after a semicolon.
pub(super) struct Hint(pub(super) i64);

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match HINTS.iter().find(|(code, _)| *code == self.0) {
            Some((_, hint)) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// Prints what the loader said of each library that it refused.
pub(super) struct Tried<'a>(pub(super) &'a [String]);

impl fmt::Display for Tried<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            tried => write!(f, " that loads ({})", tried.join("; ")),
        }
    }
}
