//! How names are hashed.

use foldhash::SharedSeed;
use foldhash::fast::SeedableRandomState;

/// A hash that peers can't predict when its seed is random; the embedder gives it.
pub(crate) type Hash = SeedableRandomState;

pub(crate) fn seeded(seed: u64) -> Hash {
    SeedableRandomState::with_seed(seed, SharedSeed::global_fixed())
}
