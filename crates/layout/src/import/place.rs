//! Parts of a report, as errors name them.

use alloc::string::String;
use core::fmt;

/// Names one part of an engine's report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportPlace {
    /// The engine's configuration.
    Config,
    /// The arguments of `SGLang`'s transfers, `kv_args`.
    KvArgs,
    /// One cache group.
    Group(u32),
    /// One layer of a group.
    Layer {
        /// Its group.
        group: u32,
        /// Its name.
        layer: String,
    },
    /// Some buffer.
    Buffers,
    /// One component of a pool.
    Component(String),
    /// One buffer of a component.
    Buffer {
        /// What it holds.
        role: String,
        /// Its component.
        component: String,
    },
    /// One view of a layer.
    View {
        /// What it shows.
        role: String,
        /// Its layer.
        layer: u64,
    },
}

impl fmt::Display for ReportPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config => f.write_str("config"),
            Self::KvArgs => f.write_str("kv_args"),
            Self::Group(id) => write!(f, "group {id}"),
            Self::Layer { group, layer } => write!(f, "layer `{layer}` of group {group}"),
            Self::Buffers => f.write_str("a buffer"),
            Self::Component(name) => write!(f, "component `{name}`"),
            Self::Buffer { role, component } => {
                write!(f, "buffer `{role}` of component `{component}`")
            }
            Self::View { role, layer } => write!(f, "view `{role}` of layer {layer}"),
        }
    }
}

impl From<&Self> for ReportPlace {
    fn from(place: &Self) -> Self {
        place.clone()
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::ReportPlace;

    #[test]
    fn every_place_of_a_report_is_named() {
        for (place, text) in [
            (ReportPlace::Config, "config"),
            (ReportPlace::KvArgs, "kv_args"),
            (ReportPlace::Group(3), "group 3"),
            (
                ReportPlace::Layer {
                    group: 3,
                    layer: "l".into(),
                },
                "layer `l` of group 3",
            ),
            (ReportPlace::Buffers, "a buffer"),
            (ReportPlace::Component("kv".into()), "component `kv`"),
            (
                ReportPlace::Buffer {
                    role: "k".into(),
                    component: "kv".into(),
                },
                "buffer `k` of component `kv`",
            ),
            (
                ReportPlace::View {
                    role: "k".into(),
                    layer: 5,
                },
                "view `k` of layer 5",
            ),
        ] {
            assert_eq!(place.to_string(), text);
        }
    }
}
