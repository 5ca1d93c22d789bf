use super::TODAY;
use super::wander::{Wander, wander};
use crate::history::History;
use crate::limit::Limit;

pub(crate) const ABOUT: &str = "Token buckets: a fresh key is full, tokens are added continuously, and retryAt is \
exact.";

pub(crate) fn vectors() -> Vec<String> {
    let mut out = Vec::new();
    for (name, limit, count) in [
        ("ten a second", Limit::bucket(10.0, 1000.0), 1.0),
        ("ten a minute, burst of 20", Limit::bucket(10.0, 60_000.0).capacity(20.0), 3.0),
        ("seven in three ms", Limit::bucket(7.0, 3.0), 2.0),
        ("a third of a token a second", Limit::bucket(1.0, 3000.0), 1.0),
        ("fractional counts", Limit::bucket(2.5, 1000.0).capacity(1.25), 0.375),
        ("capacity far above the rate", Limit::bucket(1.0, 1000.0).capacity(1000.0), 400.0),
        ("a token a year", Limit::bucket(1.0, 31_536_000_000.0), 1.0),
        ("the largest rate", Limit::bucket(1_099_511_627_776.0, 1.0), 1e12),
        ("the longest period", Limit::bucket(1.0, 1_099_511_627_776.0).capacity(2.0), 1.0),
        ("a tiny rate", Limit::bucket(1e-6, 1000.0).capacity(2.0), 1.0),
        ("a thousand tokens an ms", Limit::bucket(1000.0, 1.0), 333.0),
    ] {
        for start in [0.0, TODAY] {
            let mut h = History::new(&format!("{name}, from {start}"), limit);
            let at = h.emptied(start, count, 12);
            h.check(at, count);
            out.push(h.finish());
        }
    }
    let mut h =
        History::new("a count above the capacity is never granted, and nothing is read", Limit::bucket(10.0, 1000.0));
    h.takes(TODAY, &[(0.0, 10.5), (0.0, 4.0), (0.0, 11.0), (0.0, 6.0)]);
    out.push(h.finish());
    let mut h = History::new("count 0 writes nothing, and waits for the debt of others", Limit::bucket(10.0, 1000.0));
    h.takes(TODAY, &[(0.0, 0.0), (0.0, 10.0), (50.0, 0.0)]);
    h.charge(TODAY + 50.0, 3.0);
    h.take(TODAY + 50.0, 0.0);
    h.around_retry(0.0);
    out.push(h.finish());
    let mut h = History::new("the clock's end", Limit::bucket(1.0, 1000.0).capacity(5.0));
    let end = 4_503_599_627_370_496.0;
    h.takes(end, &[(-1500.0, 5.0), (-1500.0, 1.0), (-1500.0, 2.0), (-500.0, 1.0), (0.0, 1.0), (0.0, 0.0)]);
    out.push(h.finish());
    let mut h = History::new("a count too small to change the value is still written", Limit::bucket(1e12, 1000.0));
    h.takes(TODAY, &[(0.0, 1e-9), (1.0, 1e-9), (1.0, 5e-324)]);
    out.push(h.finish());
    for seed in 0..30 {
        let limit = [
            Limit::bucket(10.0, 1000.0),
            Limit::bucket(100.0, 60_000.0).capacity(7.0),
            Limit::bucket(0.3, 700.0).capacity(3.0),
            Limit::bucket(1e6, 86_400_000.0).capacity(1e4),
            Limit::bucket(3.0, 7.0).capacity(11.0),
        ][seed as usize % 5];
        let most = limit.most();
        let how = Wander {
            ops: &["take", "take", "take", "check"],
            counts: &[1.0, most / 2.0, most / 3.0, most, 0.1],
            steps: &[0.0, 1.0, 13.0, 250.0, 1000.0],
        };
        out.push(wander(seed, limit, 12, how));
    }
    out
}
