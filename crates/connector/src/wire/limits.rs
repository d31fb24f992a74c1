//! How much of a peer's message we take.

/// What a message may hold before it is refused.
///
/// An announced count is compared with the bytes that are left before anything is allocated for
/// it. Memory while decoding is at most nine times the bytes of a msgpack message, plus 200 bytes
/// for each of its requests and regions, and 48 times the bytes of a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one msgpack message. 32 MiB: 60 requests of a million tokens in blocks of 16.
    pub message_bytes: usize,
    /// Bytes of one JSON text. 1 MiB: 10,000 workers.
    pub json_bytes: usize,
    /// Requests of one pull, and names in one list of an answer. 4,096.
    pub requests: usize,
    /// Transfer groups of one request or region. 256.
    pub groups: usize,
    /// Block ids of one request over all its groups. 2^20: a million tokens in blocks of one.
    pub blocks: usize,
    /// Regions of one layout. 16,384; the engine's handshake breaks at about as many.
    pub regions: usize,
    /// Bytes of a layer's name. 512.
    pub name_bytes: usize,
    /// Workers of one bootstrap server, and ranks along any one axis. 4,096.
    pub ranks: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 32 << 20,
            json_bytes: 1 << 20,
            requests: 4096,
            groups: 256,
            blocks: 1 << 20,
            regions: 16_384,
            name_bytes: 512,
            ranks: 4096,
        }
    }
}
