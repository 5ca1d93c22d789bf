use super::TODAY;
use super::wander::{Wander, wander};
use crate::history::History;
use crate::limit::Limit;

pub(crate) const ABOUT: &str = "Fixed windows: tokens are added at the start of each window, on a grid that never \
drifts.";

/// Tokens are taken until there are no more; then checks in later windows.
pub(crate) fn emptied(name: &str, limit: Limit, start: f64, count: f64) -> String {
    let mut h = History::new(name, limit);
    let at = h.emptied(start, count, 6);
    h.check(at, count);
    h.check(at + limit.period, count);
    h.check(at + 3.0 * limit.period, count);
    h.finish()
}

pub(crate) fn vectors() -> Vec<String> {
    let mut out = Vec::new();
    for (name, limit, count) in [
        ("ten a second on the UTC grid", Limit::window(10.0, 1000.0).start(0.0), 3.0),
        ("ten a second, offset", Limit::window(10.0, 1000.0).start(137.0), 3.0),
        ("carried over up to 25", Limit::window(10.0, 1000.0).capacity(25.0).start(0.0), 8.0),
        ("capacity below the rate", Limit::window(10.0, 1000.0).capacity(4.0).start(0.0), 3.0),
        ("a day", Limit::window(100.0, 86_400_000.0).start(0.0), 60.0),
        ("a period of 7 ms", Limit::window(1.0, 7.0).start(3.0), 1.0),
        ("a period of 1 ms", Limit::window(0.1, 1.0).capacity(1.0).start(0.0), 0.7),
        ("start in the future", Limit::window(10.0, 1000.0).start(TODAY + 1500.0), 4.0),
        ("start before the epoch", Limit::window(10.0, 1000.0).start(-1.0), 4.0),
        ("start at the clock's end", Limit::window(10.0, 1000.0).start(4_503_599_627_370_496.0), 4.0),
        ("the longest period", Limit::window(2.0, 1_099_511_627_776.0).start(0.0), 2.0),
        ("a rate of a third of the capacity", Limit::window(1.0, 100.0).capacity(3.0).start(50.0), 3.0),
    ] {
        for start in [0.0, TODAY, TODAY + 999.0] {
            out.push(emptied(&format!("{name}, from {start}"), limit, start, count));
        }
    }
    let mut h = History::new("a window's last and first ms", Limit::window(2.0, 1000.0).start(0.0));
    h.takes(0.0, &[(999.0, 2.0), (999.0, 1.0), (1000.0, 2.0), (1999.0, 1.0), (2000.0, 1.0)]);
    out.push(h.finish());
    let mut h = History::new("a count above the capacity", Limit::window(2.0, 1000.0).start(0.0));
    h.takes(0.0, &[(5.0, 3.0), (5.0, 0.0)]);
    out.push(h.finish());
    let mut h = History::new("the clock's end", Limit::window(2.0, 1000.0).start(0.0));
    let end = 4_503_599_627_370_496.0;
    h.takes(end, &[(-1000.0, 2.0), (-1000.0, 1.0), (-1.0, 2.0), (0.0, 1.0)]);
    out.push(h.finish());
    for seed in 0..25 {
        let limit = [
            Limit::window(10.0, 1000.0).start(0.0),
            Limit::window(3.5, 60_000.0).capacity(9.0).start(1234.0),
            Limit::window(0.1, 3.0).capacity(1.0).start(1.0),
            Limit::window(100.0, 86_400_000.0).start(-3_600_000.0),
            Limit::window(5.0, 777.0).capacity(100.0),
        ][seed as usize % 5];
        let (most, period) = (limit.most(), limit.period);
        let how = Wander {
            ops: &["take", "take", "take", "check"],
            counts: &[1.0, most / 2.0, most / 3.0, most, 0.1],
            steps: &[0.0, 1.0, (period / 4.0).floor(), period - 1.0, period, 3.0 * period],
        };
        out.push(wander(seed, limit, 12, how));
    }
    out
}
