//! The session machines in a random world.

use std::fs;
use std::path::{Path, PathBuf};

use mooncake_pd_connector::testing::sim::{
    Choices, Defect, Options, Report, check_schedule_bytes, simulate,
};

/// Schedules of the sample; `cargo xtask simulate` runs as many as one likes.
const SAMPLE: u64 = 20_000;

#[test]
fn every_invariant_holds_over_a_sample_of_schedules() {
    let mut total = Report::default();
    for seed in 0..SAMPLE {
        match simulate(Choices::seeded(seed), Options::default()) {
            Ok(report) => total.add(&report),
            Err(violation) => panic!("cargo xtask simulate 1 --seed {seed}: {violation}"),
        }
    }
    println!("{total}");
    // The sample reaches what it is to test.
    assert!(total.loaded > SAMPLE, "{total}");
    assert!(total.failed > SAMPLE / 10, "{total}");
    assert!(total.fences > SAMPLE / 20, "{total}");
    assert!(total.restarts > SAMPLE / 20, "{total}");
    assert!(total.followed > 0, "{total}");
}

#[test]
fn a_seed_replays_exactly() {
    for seed in 0..50 {
        let run = || simulate(Choices::seeded(seed), Options::default()).unwrap();
        assert_eq!(run(), run());
    }
}

#[test]
fn every_deliberate_fault_is_noticed() {
    for defect in Defect::ALL {
        let options = Options {
            defect: Some(defect),
            ..Options::default()
        };
        let noticed = (0..5_000).find_map(|seed| {
            let violation = simulate(Choices::seeded(seed), options).err()?;
            Some((seed, violation))
        });
        let (seed, violation) = noticed.unwrap_or_else(|| panic!("{defect:?} goes unnoticed"));
        println!("{defect:?} at seed {seed}: {:.200}", violation.to_string());
    }
}

#[test]
fn every_input_of_the_corpus_of_schedule_passes_the_check() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/schedule");
    let entries = fs::read_dir(folder).expect("the corpus");
    let mut inputs: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an input").path())
        .collect();
    inputs.sort();
    assert!(inputs.len() >= 30, "{} inputs", inputs.len());
    for input in inputs {
        // Shown if the check fails.
        println!("{}", input.display());
        check_schedule_bytes(&fs::read(input).expect("an input"));
    }
}
