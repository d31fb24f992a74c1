//! Random batches over split regions, and many threads at once.

use std::thread;

use mooncake_pd_layout::AllocationId;
use quickcheck::quickcheck;

use super::bench::{Bench, len, pattern};
use super::*;
use crate::bind::{Part, bind_parts};
use crate::capabilities::{RegistrationLimits, SubmissionLimits};
use crate::memory::HostMemory;
use crate::registered::Registered;
use crate::registration::RegistrationPlan;
use crate::transfer::transfer;

const SIZES: [u64; 3] = [700, 1, 301];

fn ids() -> impl Iterator<Item = (AllocationId, u64)> {
    (0..).map(AllocationId::new).zip(SIZES)
}

/// Copies inside the allocations whose destinations are disjoint.
fn parts(seeds: &[(u8, u16, u8, u16, u8)]) -> Vec<Part> {
    let mut taken: Vec<Vec<bool>> = SIZES
        .iter()
        .map(|size| vec![false; usize::try_from(*size).unwrap()])
        .collect();
    let mut parts = Vec::new();
    for (source, from, destination, to, bytes) in seeds {
        let [source, destination] = [source, destination].map(|n| usize::from(*n) % SIZES.len());
        let from = u64::from(*from) % SIZES[source];
        let to = u64::from(*to) % SIZES[destination];
        let len = (u64::from(*bytes) + 1)
            .min(SIZES[source] - from)
            .min(SIZES[destination] - to);
        let [at, count] = [to, len].map(|n| usize::try_from(n).unwrap());
        let taken = &mut taken[destination][at..][..count];
        if taken.contains(&true) {
            continue;
        }
        taken.fill(true);
        let id = |n: usize| AllocationId::new(u32::try_from(n).unwrap());
        parts.push(Part {
            source: (id(source), from),
            destination: (id(destination), to),
            len,
        });
    }
    parts
}

/// Runs copies over engines of these limits; every byte of the destination.
fn run(parts: &[Part], piece: [u64; 2], limits: SubmissionLimits, read: bool) -> Vec<Vec<u8>> {
    let fabric = Fabric::new();
    let side = |name, piece| {
        let registration = RegistrationLimits::new(2_000)
            .unwrap()
            .with_max_len(len(piece), len(1))
            .unwrap();
        let engine = fabric.attach_with(name, registration, limits).unwrap();
        let memory = HostMemory::new(ids()).unwrap();
        let plan = RegistrationPlan::of(ids(), registration).unwrap();
        let registered = Registered::new(&engine, &plan, |id| memory.buffer(id)).unwrap();
        (engine, memory, registered)
    };
    let [source, destination] = [("p", piece[0]), ("d", piece[1])].map(|(n, p)| side(n, p));
    for (id, buffer) in source.1.iter() {
        let salt = usize::try_from(id.get()).unwrap() * 10_000;
        for (at, byte) in buffer.write().iter_mut().enumerate() {
            *byte = pattern(salt + at);
        }
    }
    let (operation, from, to) = if read {
        (Operation::Read, &destination, &source)
    } else {
        (Operation::Write, &source, &destination)
    };
    let (local, remote) = (from.2.regions(), to.2.regions());
    let batch = bind_parts(parts.iter().copied(), operation, local, remote, limits).unwrap();
    let peer = from.0.open(to.0.identity().0).unwrap();
    transfer(&from.0, &peer, &batch, Patience::default(), |_| {}).unwrap();
    let bytes = |(_, buffer): (AllocationId, &HostBuffer)| buffer.read().to_vec();
    destination.1.iter().map(bytes).collect()
}

/// The same, byte by byte.
fn naive(parts: &[Part]) -> Vec<Vec<u8>> {
    let mut out: Vec<Vec<u8>> = SIZES
        .iter()
        .map(|size| vec![0; usize::try_from(*size).unwrap()])
        .collect();
    for part in parts {
        for byte in 0..part.len {
            let [source, destination] = [part.source, part.destination].map(|(id, start)| {
                let id = usize::try_from(id.get()).unwrap();
                (id, usize::try_from(start + byte).unwrap())
            });
            out[destination.0][destination.1] = pattern(source.0 * 10_000 + source.1);
        }
    }
    out
}

quickcheck! {
    fn a_batch_equals_its_copies_byte_by_byte(
        seeds: Vec<(u8, u16, u8, u16, u8)>, local: u8, remote: u8, count: u8, bytes: u8, read: bool
    ) -> bool {
        let parts = parts(&seeds);
        let [local, remote, bytes] = [local, remote, bytes].map(|n| u64::from(n) + 1);
        let limits = SubmissionLimits::new(u32::from(count) + 1, len(bytes)).unwrap();
        run(&parts, [local, remote], limits, read) == naive(&parts)
    }
}

#[test]
fn four_threads_in_both_directions_neither_block_nor_mix() {
    const PAGE: u64 = 256;
    let bench = Bench::new(8 * PAGE);
    let back = bench.decode.open("prefill").unwrap();
    let before = bench.source.read().clone();
    // Each thread owns two pages: one goes over, and what came comes back.
    thread::scope(|scope| {
        for n in 0..4_u64 {
            let (bench, back) = (&bench, &back);
            scope.spawn(move || {
                let (out, home) = (2 * n * PAGE, (2 * n + 1) * PAGE);
                for _ in 0..200 {
                    let batch = bench.batch(&[(out, out, PAGE)]);
                    let patience = Patience::default();
                    transfer(&bench.prefill, &bench.peer, &batch, patience, |_| {}).unwrap();
                    let descriptor = RawDescriptor {
                        local: bench.destination.base().get() + out,
                        remote: bench.source.base().get() + home,
                        len: PAGE,
                    };
                    let mut ticket = bench
                        .decode
                        .submit_raw(back, Operation::Write, &[descriptor])
                        .unwrap();
                    assert!(bench.decode.poll(&mut ticket).is_quiescent());
                    bench.decode.release(ticket).unwrap();
                }
            });
        }
    });
    let page = usize::try_from(PAGE).unwrap();
    for (after, before) in bench
        .source
        .read()
        .chunks(2 * page)
        .zip(before.chunks(2 * page))
    {
        assert_eq!(after[..page], before[..page]);
        assert_eq!(after[page..], before[..page]);
    }
}
