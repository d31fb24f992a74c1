//! Runs random schedules of the session machines: `simulate N [--seed S] [--trace]`.
//!
//! Schedule `i` of a run has seed `S + i`, and replays exactly with `1 --seed`.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use mooncake_pd_connector::testing::sim::{Choices, Options, Report, simulate};

fn main() -> ExitCode {
    let Some((count, first, options)) = arguments() else {
        eprintln!("usage: simulate N [--seed S] [--trace]");
        return ExitCode::from(2);
    };
    let start = Instant::now();
    let next = AtomicU64::new(0);
    let failure = Mutex::new(None);
    let total = Mutex::new(Report::default());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut sum = Report::default();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        break;
                    }
                    let seed = first.wrapping_add(index);
                    match simulate(Choices::seeded(seed), options) {
                        Ok(report) => sum.add(&report),
                        Err(violation) => {
                            // The others stop at their next schedule.
                            next.store(count, Ordering::Relaxed);
                            if let Ok(mut failure) = failure.lock() {
                                failure.get_or_insert((seed, violation));
                            }
                            break;
                        }
                    }
                }
                if let Ok(mut total) = total.lock() {
                    total.add(&sum);
                }
            });
        }
    });
    if let Some((seed, violation)) = failure.into_inner().ok().flatten() {
        eprintln!("seed {seed}: {violation}");
        eprintln!("replay: cargo xtask simulate 1 --seed {seed} --trace");
        return ExitCode::FAILURE;
    }
    if let Ok(total) = total.into_inner() {
        println!(
            "{count} schedules from seed {first} in {:.1} s: {total}",
            start.elapsed().as_secs_f64()
        );
    }
    ExitCode::SUCCESS
}

fn arguments() -> Option<(u64, u64, Options)> {
    let mut arguments = std::env::args().skip(1);
    let count = arguments.next()?.parse().ok()?;
    let mut seed = 0;
    let mut options = Options::default();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seed" => seed = arguments.next()?.parse().ok()?,
            "--trace" => options.trace = true,
            _ => return None,
        }
    }
    Some((count, seed, options))
}
