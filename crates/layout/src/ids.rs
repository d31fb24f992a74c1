//! Identities: what a raw number or name from an engine becomes.

use alloc::sync::Arc;
use core::fmt;

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// Wraps the number that names it in a manifest.
            #[must_use]
            pub const fn new(id: u32) -> Self {
                Self(id)
            }

            /// The number.
            #[must_use]
            pub const fn get(self) -> u32 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number_id!(
    /// Names an allocation within one layout, 0..2^32; never an address.
    AllocationId
);
number_id!(
    /// Names a cache group on both sides of a transfer, 0..2^32; never a
    /// position in a list.
    GroupId
);
number_id!(
    /// Names an id space within one layout, 0..2^32.
    PoolId
);

macro_rules! name_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps a name.
            #[must_use]
            pub fn new(name: &str) -> Self {
                Self(Arc::from(name))
            }

            /// The name.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name_id!(
    /// A layer's name; both sides of a transfer pair their layers by it.
    LayerId
);
name_id!(
    /// A field's name within its layer and group (`kv`, `k`, `conv`).
    FieldId
);

/// A live block of a paged group's pool, 0..2^32, never the null or a reserved
/// one of its pool. Made only by [`CacheLayout::entry`](crate::CacheLayout::entry).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogicalBlock(u32);

impl LogicalBlock {
    pub(crate) const fn new(id: u32) -> Self {
        Self(id)
    }

    /// The id in its pool.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// A live state slot of a state group's pool, 0..2^32, never the null or a
/// reserved one. It has no physical pages. Made only by
/// [`CacheLayout::entry`](crate::CacheLayout::entry).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateSlot(u32);

impl StateSlot {
    pub(crate) const fn new(id: u32) -> Self {
        Self(id)
    }

    /// The id in its pool.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// One position of a block table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockEntry {
    /// A placeholder: the position exists, no block stands behind it.
    Null,
    /// A block of a paged group.
    Block(LogicalBlock),
    /// A slot of a state group.
    State(StateSlot),
}

/// A kernel page, 0..2^64: what a [`LogicalBlock`] becomes under its own
/// side's [`Expansion`](crate::Expansion).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PhysicalBlock(u64);

impl PhysicalBlock {
    pub(crate) const fn new(id: u64) -> Self {
        Self(id)
    }

    /// The page's number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}
