//! Every reason has a name for machines and a text for people.

use mooncake_pd_plan::UnfilledReason;

#[test]
fn reasons_of_unfilled_blocks_have_names_and_texts() {
    let known = [
        (UnfilledReason::SourceNull, "source_null"),
        (UnfilledReason::NotHeld, "not_held"),
        (UnfilledReason::BeyondComputed, "beyond_computed"),
        (UnfilledReason::NotLatestState, "not_latest_state"),
        (UnfilledReason::OutsideWindow, "outside_window"),
    ];
    let texts: Vec<String> = known.iter().map(|(reason, _)| reason.to_string()).collect();
    for (at, (reason, name)) in known.iter().enumerate() {
        assert_eq!(reason.name(), *name);
        assert!(texts[at].len() > 10, "{name}");
        assert!(!texts[..at].contains(&texts[at]), "{name}");
    }
}
