//! A prefill and a decode rank with nothing but a network between them.

use mooncake_pd_connector::{Dialect, PrefillEvent, Span};

use crate::decode_rank::D;
use crate::prefill_rank::P;

struct Pair {
    p: P,
    d: D,
    /// What both asked for, in order.
    log: Vec<String>,
}

impl Pair {
    fn new() -> Self {
        let (p, mut d) = (P::new(), D::new());
        d.now = p.now;
        let log = Vec::new();
        Self { p, d, log }
    }

    /// Carries every message until none is left.
    fn run(&mut self) {
        loop {
            let mut out = self.d.out();
            if out.iter().any(|text| text.starts_with("resolve")) {
                self.d.resolve(1, 1, Dialect::Own);
            }
            for (_, pull) in std::mem::take(&mut self.d.pulls) {
                self.p.take(PrefillEvent::Pulled(pull)).unwrap();
            }
            for (_, cancel) in std::mem::take(&mut self.d.cancels) {
                self.p.take(PrefillEvent::Cancelled(cancel)).unwrap();
            }
            out.extend(self.p.out());
            for answer in std::mem::take(&mut self.p.answers) {
                self.d.answered(answer);
            }
            if out.is_empty() {
                return;
            }
            out.retain(|text| text.contains("ended") || text.starts_with("drain"));
            self.log.extend(out);
        }
    }

    fn logged(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }
}

#[test]
fn c38_a_prompt_that_stopped_at_once_is_loaded_without_any_wait() {
    let mut pair = Pair::new();
    pair.p.start("a").unwrap();
    pair.d.load("a", &[&[6, 7], &[0, 8]]).unwrap();
    pair.run();
    pair.p.finish("a").unwrap();
    pair.run();
    pair.p.settle(0, Ok(()));
    pair.run();
    assert_eq!(pair.logged(), ["a ended: delivered", "a ended: loaded 32"]);
    assert_eq!(pair.d.machine.metrics().took.sum_micros(), 0);
}

#[test]
fn c43_an_abort_at_prefill_ends_the_load_without_any_wait() {
    for computed in [false, true] {
        let mut pair = Pair::new();
        pair.p.start("a").unwrap();
        pair.d.load("a", &[&[6, 7], &[0, 8]]).unwrap();
        if computed {
            pair.p.finish("a").unwrap();
        }
        pair.run();
        pair.p.abort("a").unwrap();
        pair.run();
        if computed {
            assert_eq!(pair.logged(), ["drain 0"]);
            pair.p.settle(0, Err(-1));
            pair.run();
        }
        let last = pair.logged().pop();
        let text = "a ended: prefill refused: aborted by the prefill engine";
        assert_eq!(last.as_deref(), Some(text), "computed: {computed}");
        pair.p.assert_idle();
        pair.d.assert_idle();
    }
}

#[test]
fn c40_an_abort_at_decode_drains_the_writer_and_ends_both_sides() {
    let mut pair = Pair::new();
    pair.p.start("a").unwrap();
    pair.p.finish("a").unwrap();
    pair.d.load("a", &[&[6, 7], &[0, 8]]).unwrap();
    pair.run();
    pair.d.abort("a").unwrap();
    pair.run();
    assert_eq!(pair.logged(), ["drain 0"]);
    assert_eq!((pair.p.machine.leases(), pair.d.machine.leases()), (1, 1));
    pair.p.settle(0, Err(-1));
    pair.run();
    assert_eq!(
        pair.logged(),
        [
            "a ended: cancelled by decode",
            "a ended: aborted by its engine"
        ]
    );
    pair.p.assert_idle();
    pair.d.assert_idle();
}

#[test]
fn an_abort_before_the_look_up_lets_prefill_go_at_once() {
    let mut pair = Pair::new();
    pair.p.start("a").unwrap();
    pair.p.finish("a").unwrap();
    pair.d.load("a", &[&[6, 7], &[0, 8]]).unwrap();
    pair.d.abort("a").unwrap();
    pair.run();
    assert_eq!(
        pair.logged(),
        ["a ended: aborted by its engine", "a ended: released"]
    );
    pair.p.pass(Span::from_secs(1));
    pair.p.assert_idle();
    pair.d.assert_idle();
}
