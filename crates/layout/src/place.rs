//! Parts of a layout, as errors name them.

use alloc::boxed::Box;
use core::fmt;

use crate::ids::{AllocationId, FieldId, GroupId, LayerId, PoolId};

/// Names one field of a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPlace {
    /// Its group.
    pub group: GroupId,
    /// Its layer.
    pub layer: LayerId,
    /// Its name.
    pub field: FieldId,
}

impl fmt::Display for FieldPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "field `{}` of layer `{}` in group {}",
            self.field, self.layer, self.group
        )
    }
}

/// Names one part of a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// All of it.
    Layout,
    /// One allocation.
    Allocation(AllocationId),
    /// One id space.
    Pool(PoolId),
    /// One pair of the list of arbitrated pools.
    ArbitratedPair(PoolId, PoolId),
    /// One group.
    Group(GroupId),
    /// One layer.
    Layer {
        /// Its group.
        group: GroupId,
        /// Its name.
        layer: LayerId,
    },
    /// One field.
    Field(Box<FieldPlace>),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layout => f.write_str("the layout"),
            Self::Allocation(id) => write!(f, "allocation {id}"),
            Self::Pool(id) => write!(f, "pool {id}"),
            Self::ArbitratedPair(a, b) => write!(f, "arbitrated pair [{a}, {b}]"),
            Self::Group(id) => write!(f, "group {id}"),
            Self::Layer { group, layer } => write!(f, "layer `{layer}` of group {group}"),
            Self::Field(place) => place.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::string::ToString;

    use super::{FieldPlace, Place};
    use crate::ids::{AllocationId, FieldId, GroupId, LayerId, PoolId};

    #[test]
    fn every_place_is_named_with_its_id() {
        let (group, layer) = (GroupId::new(4), LayerId::new("l"));
        let field = FieldPlace {
            group,
            layer: layer.clone(),
            field: FieldId::new("kv"),
        };
        for (place, text) in [
            (Place::Layout, "the layout"),
            (Place::Allocation(AllocationId::new(1)), "allocation 1"),
            (Place::Pool(PoolId::new(2)), "pool 2"),
            (
                Place::ArbitratedPair(PoolId::new(2), PoolId::new(3)),
                "arbitrated pair [2, 3]",
            ),
            (Place::Group(group), "group 4"),
            (Place::Layer { group, layer }, "layer `l` of group 4"),
            (
                Place::Field(Box::new(field)),
                "field `kv` of layer `l` in group 4",
            ),
        ] {
            assert_eq!(place.to_string(), text);
        }
    }
}
