//! What a layout says of itself, and the borders of its quantities.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

use mooncake_pd_layout::raw::{RawContent, RawShard};
use mooncake_pd_layout::{
    Axis, BYTE_LIMIT, BlockEntry, ByteLen, ByteSpan, CacheLayout, Difference, FieldId, FieldPlace,
    FieldSpec, GroupId, GroupKind, GroupSpec, LayerId, LayoutBuilder, Offset, PagesPerBlock,
    PhysicalBlock, PoolId, QuantityError, Run, RunError, Split, Stride, TokensPerBlock,
    WindowTokens,
};

const LAST: u64 = BYTE_LIMIT - 1;

fn len(bytes: u64) -> ByteLen {
    ByteLen::new(bytes).unwrap()
}

fn at(bytes: u64) -> Offset {
    Offset::new(bytes).unwrap()
}

#[test]
fn bytes_are_accepted_up_to_the_last_below_the_limit() {
    let zero = |what| Err(QuantityError::Zero { what });
    assert_eq!(ByteLen::new(LAST).map(ByteLen::get), Ok(LAST));
    assert_eq!(Offset::new(LAST).map(Offset::get), Ok(LAST));
    assert_eq!(Stride::new(LAST).map(Stride::get), Ok(LAST));
    assert_eq!(ByteLen::new(0).map(ByteLen::get), zero("length"));
    assert_eq!(Stride::new(0).map(Stride::get), zero("stride"));
    assert_eq!(Offset::new(0).map(Offset::get), Ok(0));
    for error in [
        ByteLen::new(BYTE_LIMIT).unwrap_err(),
        Offset::new(BYTE_LIMIT).unwrap_err(),
        Stride::new(BYTE_LIMIT).unwrap_err(),
    ] {
        let text = error.to_string();
        let range = "4611686018427387904 is outside 0..4611686018427387904";
        assert!(text.ends_with(range), "{text}");
    }
    assert_eq!(at(LAST - 1).checked_add(1), Some(at(LAST)));
    assert_eq!(at(LAST).checked_add(1), None);
    assert_eq!(at(1).checked_add(u64::MAX), None);
}

#[test]
fn counts_are_at_least_one() {
    assert_eq!(TokensPerBlock::new(u32::MAX).unwrap().get(), u32::MAX);
    assert_eq!(WindowTokens::new(1).unwrap().get(), 1);
    assert_eq!(PagesPerBlock::ONE.get(), 1);
    for error in [
        TokensPerBlock::new(0).unwrap_err(),
        WindowTokens::new(0).unwrap_err(),
        PagesPerBlock::new(0).unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(text.ends_with("is 0, it must be at least 1"), "{text}");
    }
}

#[test]
fn a_span_ends_where_its_bytes_do() {
    let span = ByteSpan::new(at(5), len(3)).unwrap();
    assert_eq!((span.start(), span.len(), span.end()), (at(5), len(3), 8));
    assert!(!span.is_empty());
    assert_eq!(ByteSpan::new(at(LAST - 1), len(1)).unwrap().end(), LAST);
    assert!(ByteSpan::new(at(LAST), len(1)).is_err());
}

#[test]
fn a_run_is_its_pieces() {
    let run = Run::new(at(10), len(4), 6, 3).unwrap();
    assert_eq!((run.start(), run.len()), (at(10), len(4)));
    assert_eq!((run.stride(), run.count()), (6, 3));
    assert_eq!((run.payload(), run.end()), (12, 26));
    assert!(!run.is_empty());
    let pieces: Vec<_> = run.pieces().map(|p| (p.start().get(), p.end())).collect();
    assert_eq!(pieces, [(10, 14), (16, 20), (22, 26)]);
}

#[test]
fn pieces_of_a_run_touch_but_never_overlap_nor_leave_the_range() {
    assert!(Run::new(at(0), len(4), 4, 2).is_ok());
    assert_eq!(
        Run::new(at(0), len(4), 3, 2),
        Err(RunError::Overlap { len: 4, stride: 3 })
    );
    assert!(Run::new(at(0), len(4), 0, 1).is_ok());
    assert!(Run::new(at(0), len(4), 4, 0).is_err());
    assert_eq!(Run::new(at(LAST - 6), len(2), 4, 2).unwrap().end(), LAST);
    assert!(Run::new(at(LAST - 5), len(2), 4, 2).is_err());
    assert!(Run::new(at(0), len(2), u64::MAX, 3).is_err());
}

#[test]
fn kinds_say_their_name_window_and_whether_they_are_state() {
    let window = WindowTokens::new(7).unwrap();
    for (kind, name, reach, state) in [
        (GroupKind::FullAttention, "full_attention", None, false),
        (GroupKind::Mla, "mla", None, false),
        (GroupKind::GdnState, "gdn_state", None, true),
        (
            GroupKind::SlidingWindow(window),
            "sliding_window",
            Some(window),
            false,
        ),
        (
            GroupKind::SlidingWindowMla(window),
            "sliding_window_mla",
            Some(window),
            false,
        ),
    ] {
        assert_eq!(
            (kind.name(), kind.window(), kind.is_state()),
            (name, reach, state)
        );
    }
}

fn layout() -> CacheLayout {
    let field = FieldSpec::new("kv", "bfloat16")
        .at(7, 16)
        .page_stride(64)
        .dim(Axis::Token, 4, 16)
        .dim(Axis::Head, 2, 8)
        .dim(Axis::Content, 3, 2)
        .split(Axis::Head, &[2]);
    LayoutBuilder::new()
        .allocation(7, 1000)
        .pool(5, 4, Some(0))
        .shard(RawShard {
            tp_rank: 1,
            tp_size: 2,
            pp_rank: 3,
            pp_size: 4,
        })
        .group(
            GroupSpec::new(9, "full_attention", 8, 5)
                .pages_per_block(2)
                .layer("l", [field]),
        )
        .build()
        .unwrap()
}

#[test]
fn a_layout_says_what_its_manifest_says() {
    let layout = layout();
    let shard = layout.shard();
    assert_eq!((shard.tp_rank(), shard.tp_size()), (1, 2));
    assert_eq!((shard.pp_rank(), shard.pp_size()), (3, 4));
    assert_eq!(shard.to_string(), "tp rank 1 of 2, pp rank 3 of 4");
    let [allocation] = layout.allocations() else {
        panic!("{layout:?}")
    };
    assert_eq!((allocation.id().get(), allocation.len()), (7, len(1000)));
    assert!(!allocation.is_empty());
    let pool = layout.pool(PoolId::new(5)).unwrap();
    assert_eq!((pool.id().get(), pool.capacity()), (5, 4));
    assert_eq!((pool.null_id(), pool.reserved().len()), (Some(0), 0));
    let live: Vec<bool> = (0..5).map(|id| pool.is_live(id)).collect();
    assert_eq!(live, [false, true, true, true, false]);
    let group = layout.group(GroupId::new(9)).unwrap();
    assert_eq!(group.pool(), pool.id());
    assert_eq!(group.tokens_per_block().get(), 8);
    assert_eq!(group.expansion().pages_per_block().get(), 2);
    assert_eq!(group.layers().len(), 1);
}

#[test]
fn a_field_says_where_its_blocks_are() {
    let layout = layout();
    let group = layout.group(GroupId::new(9)).unwrap();
    let (layer, field) = group.fields().next().unwrap();
    assert_eq!((layer.as_str(), field.id().as_str()), ("l", "kv"));
    assert_eq!((field.allocation().get(), field.offset()), (7, at(16)));
    assert_eq!(field.page_stride().get(), 64);
    assert_eq!(field.block_stride().get(), 128);
    assert_eq!(field.block_offset(3), Some(at(16 + 3 * 128)));
    assert_eq!(field.payload_len(), len(2 * 4 * 2 * 3 * 2));
    assert_eq!(field.span(), len(64 + 3 * 16 + 8 + 6));
    let dims: Vec<_> = field
        .dims()
        .iter()
        .map(|dim| (dim.axis(), dim.extent(), dim.stride()))
        .collect();
    let expected = [
        (Axis::Page, 2, 64),
        (Axis::Token, 4, 16),
        (Axis::Head, 2, 8),
        (Axis::Content, 3, 2),
    ];
    assert_eq!(dims, expected);
    assert_eq!(field.split().to_string(), "sharded along head in parts [2]");
    assert_eq!(Split::Replicated.to_string(), "replicated");
    let page = group.layers().values().next().unwrap();
    assert_eq!(page.field(&FieldId::new("kv")), Some(field));
    assert_eq!(page.field(&FieldId::new("k")), None);
}

#[test]
fn differences_name_both_values() {
    let group = GroupId::new(2);
    let place = || {
        Box::new(FieldPlace {
            group,
            layer: LayerId::new("l"),
            field: FieldId::new("kv"),
        })
    };
    let window = GroupKind::SlidingWindow(WindowTokens::new(7).unwrap());
    for (difference, name, incompatible, text) in [
        (
            Difference::Groups {
                source_groups: vec![GroupId::new(1), group],
                destination_groups: vec![],
            },
            "groups",
            true,
            "the source has groups [1, 2], the destination has []",
        ),
        (
            Difference::Kind {
                group,
                source_kind: GroupKind::Mla,
                destination_kind: window,
            },
            "kind",
            true,
            "group 2 is of kind mla at the source, sliding_window at the destination",
        ),
        (
            Difference::Window {
                group,
                source_kind: window,
                destination_kind: GroupKind::Mla,
            },
            "window",
            true,
            "group 2 has a window of 7 tokens at the source, all at the destination",
        ),
        (
            Difference::PagesPerBlock {
                group,
                source_pages: PagesPerBlock::ONE,
                destination_pages: PagesPerBlock::new(2).unwrap(),
            },
            "pages_per_block",
            false,
            "group 2 has 1 kernel pages per block at the source, 2 at the destination",
        ),
        (
            Difference::DestinationLayer {
                group,
                layer: LayerId::new("l"),
            },
            "destination_layer",
            false,
            "layer `l` of group 2 is at the destination, the source has none",
        ),
        (
            Difference::SourceField { place: place() },
            "source_field",
            true,
            "field `kv` of layer `l` in group 2 is at the source, the destination has none",
        ),
        (
            Difference::Shape {
                place: place(),
                source_order: vec![(Axis::Head, 2), (Axis::Token, 4)],
                destination_order: vec![(Axis::Byte, 8)],
            },
            "shape",
            true,
            "field `kv` of layer `l` in group 2 is ordered [head 2, token 4] at the source, \
             [byte 8] at the destination",
        ),
    ] {
        assert_eq!(difference.to_string(), text);
        assert_eq!(difference.name(), name);
        assert_eq!(difference.is_incompatible(), incompatible, "{text}");
    }
}

#[test]
fn an_empty_content_tag_fits_every_other() {
    let texts = [
        (
            "a",
            "b",
            true,
            "model revision is `a` at the source, `b` at the destination",
        ),
        (
            "",
            "b",
            false,
            "the source does not state its model revision, the destination's is `b`",
        ),
        (
            "a",
            "",
            false,
            "the destination does not state its model revision, the source's is `a`",
        ),
    ];
    for (from, to, incompatible, text) in texts {
        let difference = Difference::Content {
            tag: "model revision",
            source_tag: from.into(),
            destination_tag: to.into(),
        };
        assert_eq!(difference.to_string(), text);
        assert_eq!(difference.name(), "content");
        assert_eq!(difference.is_incompatible(), incompatible);
    }
}

#[test]
fn a_builder_says_who_made_the_layout_and_what_its_bytes_mean() {
    let content = RawContent {
        model_revision: "r".into(),
        state_order: "s".into(),
    };
    let raw = LayoutBuilder::new()
        .named("engine", "model")
        .content(content.clone())
        .into_raw();
    assert_eq!(
        (raw.engine.as_str(), raw.model.as_str()),
        ("engine", "model")
    );
    assert_eq!(raw.content, content);
}

#[test]
fn a_block_is_its_pages_in_order() {
    let layout = layout();
    let group = GroupId::new(9);
    let Ok(BlockEntry::Block(block)) = layout.entry(group, 3) else {
        panic!("3 is a live block")
    };
    let expansion = layout.group(group).unwrap().expansion();
    let pages: Vec<u64> = expansion.pages(block).map(PhysicalBlock::get).collect();
    assert_eq!(pages, [6, 7]);
}

#[test]
fn a_state_slot_is_its_id() {
    let state = FieldSpec::new("recurrent", "uint8")
        .page_stride(8)
        .dim(Axis::Byte, 8, 1);
    let layout = LayoutBuilder::new()
        .allocation(0, 80)
        .pool(0, 10, Some(0))
        .group(GroupSpec::new(0, "gdn_state", 16, 0).layer("l", [state]))
        .build()
        .unwrap();
    for id in [1, 2, 9] {
        let Ok(BlockEntry::State(slot)) = layout.entry(GroupId::new(0), id) else {
            panic!("{id} is a live slot")
        };
        assert_eq!(u64::from(slot.get()), id);
    }
}

#[test]
fn quantities_and_digests_are_written_as_their_numbers() {
    assert_eq!(at(1_114_112).to_string(), "1114112");
    assert_eq!(Stride::new(12_288).unwrap().to_string(), "12288");
    let fingerprint = layout().fingerprint();
    let hex = fingerprint.as_bytes().map(|byte| format!("{byte:02x}"));
    let hex = hex.concat();
    assert_eq!(fingerprint.to_string(), hex);
    assert_eq!(format!("{fingerprint:?}"), format!("Fingerprint({hex})"));
}

#[test]
fn one_replica_is_not_written() {
    let mut raw = layout().to_raw();
    let text = |raw: &_| CacheLayout::new(raw).unwrap().to_json().unwrap();
    assert!(!text(&raw).contains("replicas"));
    raw.groups[0].layers[0].fields[0]
        .split
        .as_mut()
        .unwrap()
        .replicas = 2;
    let text = text(&raw).replace(' ', "");
    assert!(text.contains(r#""replicas":2"#), "{text}");
}
