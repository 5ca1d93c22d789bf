use super::TODAY;
use super::wander::{Wander, wanders};
use crate::history::History;
use crate::limit::Limit;

pub(crate) const ABOUT: &str = "Clocks that stop, step back, oscillate or were wrong: no tokens are created, and a ts \
from a broken clock is ignored from the next call on.";

pub(crate) fn vectors() -> Vec<String> {
    let mut out = Vec::new();
    for (name, limit) in [
        ("bucket", Limit::bucket(10.0, 1000.0)),
        ("window", Limit::window(10.0, 1000.0).start(0.0)),
        ("window of an hour and more", Limit::window(10.0, 5_000_000.0).start(0.0)),
        ("bucket with reserve", Limit::bucket(10.0, 60_000.0).max_reserved(30.0)),
    ] {
        for back in [1.0, 10_000.0, 3_599_999.0, 3_600_000.0, 3_600_001.0, 31_536_000_000.0] {
            let mut h = History::new(&format!("{name}: back by {back} ms"), limit);
            h.take(TODAY, 5.0);
            h.take(TODAY - back, 1.0);
            h.take(TODAY - back, 6.0);
            h.reserve(TODAY - back, 2.0);
            h.project(TODAY - back);
            h.check(TODAY, 1.0);
            h.take(TODAY + 500.0, 7.0);
            out.push(h.finish());
        }
        for jump in [1e9, 31_536_000_000.0, 1e14] {
            let mut h = History::new(&format!("{name}: a jump of {jump} ms ahead, then back"), limit);
            h.take(TODAY, 9.0);
            h.take(TODAY + jump, 9.0);
            h.check(TODAY + 1.0, 1.0);
            h.project(TODAY + 1.0);
            h.takes(TODAY, &[(1.0, 0.0), (1.0, 10.0), (2.0, 10.0)]);
            out.push(h.finish());
        }
        let mut h = History::new(&format!("{name}: oscillating"), limit);
        for i in 0..10 {
            h.take(TODAY + if i % 2 == 0 { 0.0 } else { 900.0 }, 2.0);
        }
        out.push(h.finish());
        let mut h = History::new(&format!("{name}: a broken clock, by each operation"), limit);
        h.charge(TODAY + 1e10, 50.0);
        h.check(TODAY, 10.0);
        h.give(TODAY, 3.0);
        h.charge(TODAY, 1.0);
        h.charge(TODAY + 1e10, 50.0);
        h.reserve(TODAY, 10.0);
        h.take(TODAY, 1.0);
        out.push(h.finish());
        let mut h = History::new(&format!("{name}: full, and stamped ahead of the clock"), limit);
        h.take(TODAY + 60_000.0, 0.5);
        h.give(TODAY + 60_000.0, 0.5);
        h.check(TODAY, 1.0);
        h.check(TODAY, 0.0);
        h.project(TODAY);
        out.push(h.finish());
    }
    let mut h = History::new("only what was written remembers the clock", Limit::bucket(10.0, 1000.0));
    h.check(TODAY + 10_000.0, 1.0);
    h.takes(TODAY, &[(0.0, 10.0), (10_000.0, 10.0), (0.0, 1.0)]);
    out.push(h.finish());
    let limits = [
        Limit::bucket(10.0, 1000.0),
        Limit::window(10.0, 1000.0),
        Limit::bucket(2.0, 300.0).capacity(7.0).max_reserved(3.0),
        Limit::window(4.0, 1500.0).capacity(9.0).start(11.0),
    ];
    let how = Wander {
        ops: &["take", "take", "reserve", "check", "give"],
        counts: &[1.0, 2.0, 3.5],
        steps: &[-3_600_001.0, -1000.0, -300.0, -1.0, 0.0, 1.0, 400.0, 1000.0, 5_000_000.0],
    };
    out.extend(wanders(&limits, 16, 14, how));
    out
}
