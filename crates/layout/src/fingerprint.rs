//! A digest of what pages contain.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use sha2::{Digest, Sha256};

use crate::axis::Split;
use crate::field::Field;
use crate::group::{Group, Page};
use crate::ids::LayerId;
use crate::layout::CacheLayout;
use crate::units::WindowTokens;

/// First string of the encoding; changes with it.
const DOMAIN: &str = "mooncake-pd-fingerprint/1";

/// 256 bits over the content of a layout's pages.
///
/// Two layouts of the same tensor- and pipeline-parallel place with equal
/// fingerprints are compatible; those with different ones may be, which
/// [`compare`](crate::compare) decides. Strides, offsets, padding, lengths,
/// block counts, pools, ranks, and the order of groups, layers and fields have
/// no part in it.
///
/// It is the SHA-256 of this encoding. `n` is a number as 8 bytes, little
/// endian; `s` is a string as `n` (its bytes) and UTF-8; `list` is `n` (its
/// length) and the items.
/// - layout: `s` `mooncake-pd-fingerprint/1`, `s` model revision, `s` state
///   order, list of groups by id;
/// - group: `n` id, `s` kind, `n` window (0: none), `n` tokens per block, `n`
///   pages per block, list of layers by name;
/// - layer: `s` name, list of fields by name;
/// - field: `s` name, `s` dtype, list of axes in
///   [byte order](crate::Field::byte_order), split;
/// - axis: `s` name, `n` extent;
/// - split: `n` 0 when replicated, else `n` 1, `s` axis, `n` replicas, list of
///   `n` parts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The digest.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl CacheLayout {
    /// The digest of what this layout's pages contain.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let mut encoder = Encoder(Sha256::new());
        encoder.string(DOMAIN);
        encoder.string(&self.content.model_revision);
        encoder.string(&self.content.state_order);
        encoder.count(self.groups.len());
        for group in &self.groups {
            encoder.group(group);
        }
        Fingerprint(encoder.0.finalize().into())
    }
}

struct Encoder(Sha256);

impl Encoder {
    fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    fn count(&mut self, count: usize) {
        // No list of a layout comes near 2^64 items.
        self.number(u64::try_from(count).unwrap_or(u64::MAX));
    }

    fn string(&mut self, string: &str) {
        self.count(string.len());
        self.0.update(string.as_bytes());
    }

    fn group(&mut self, group: &Group) {
        self.number(u64::from(group.id.get()));
        self.string(group.kind.name());
        let window = group.kind.window().map_or(0, WindowTokens::get);
        self.number(u64::from(window));
        self.number(u64::from(group.tokens_per_block.get()));
        self.number(u64::from(group.expansion.pages_per_block().get()));
        let mut layers: Vec<(&LayerId, &Page)> = group.layers.iter().collect();
        layers.sort_by_key(|(name, _)| *name);
        self.count(layers.len());
        for (name, page) in layers {
            self.string(name.as_str());
            let mut fields: Vec<&Field> = page.fields.iter().collect();
            fields.sort_by_key(|field| field.id());
            self.count(fields.len());
            for field in fields {
                self.field(field);
            }
        }
    }

    fn field(&mut self, field: &Field) {
        self.string(field.id().as_str());
        self.string(field.dtype().name());
        let order = field.byte_order();
        self.count(order.len());
        for (axis, extent) in order {
            self.string(&axis.to_string());
            self.number(extent);
        }
        match field.split() {
            Split::Replicated => self.number(0),
            Split::Sharded {
                axis,
                parts,
                replicas,
            } => {
                self.number(1);
                self.string(&axis.to_string());
                self.number(u64::from(*replicas));
                self.count(parts.len());
                for part in parts {
                    self.number(*part);
                }
            }
        }
    }
}
