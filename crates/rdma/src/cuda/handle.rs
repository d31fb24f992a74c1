//! Streams and events of others, as numbers.

/// The number of a stream of the driver or of CUDA's runtime, 0..2^64: the
/// address that `CUstream` or `cudaStream_t` is. In PyTorch
/// `stream.cuda_stream`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamHandle(usize);

impl StreamHandle {
    /// The default stream, which waits for all streams that are not
    /// non-blocking, 0.
    pub const DEFAULT: Self = Self(0);

    /// That number. Whether there is such a stream is not known here.
    #[must_use]
    pub const fn new(number: usize) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0
    }
}

/// The number of an event of the driver or of CUDA's runtime, 0..2^64: the
/// address that `CUevent` or `cudaEvent_t` is. In PyTorch `event.cuda_event`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventHandle(usize);

impl EventHandle {
    /// That number. Whether there is such an event is not known here.
    #[must_use]
    pub const fn new(number: usize) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0
    }
}
