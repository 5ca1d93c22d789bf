use super::TODAY;
use super::wander::{Wander, wander};
use crate::history::History;
use crate::limit::Limit;

pub(crate) const ABOUT: &str = "Cases in which rounding shows: the value is the same to the bit on every host, and \
retryAt is exact all the same.";

pub(crate) fn vectors() -> Vec<String> {
    let mut out = Vec::new();
    for (rate, period) in [
        (10.0 / 3.0, 1000.0),
        (0.1, 1.0),
        (0.3, 7.0),
        (1.0 / 3.0, 3.0),
        (7.0, 604_800_000.0),
        (1e9, 86_400_000.0),
        (123_456.789, 999_983.0),
        (1_099_511_627_775.9, 1_099_511_627_775.0),
        (5e-324, 1.0),
        (2.2250738585072014e-308, 1000.0),
    ] {
        let most = f64::max(rate, 3.0);
        let parts = [0.1, 1.0 / 3.0, 0.7, 0.999_999_999_999];
        for (kind, limit, parts) in [
            ("", Limit::bucket(rate, period), &parts[..]),
            ("window, ", Limit::window(rate, period).start(17.0), &parts[..3]),
        ] {
            let mut h = History::new(&format!("{kind}{rate} in {period} ms"), limit.capacity(most));
            h.take(TODAY, most);
            for part in parts {
                h.take(TODAY + 1.0, most * part);
                h.around_any_retry(most * part);
            }
            out.push(h.finish());
        }
    }
    let mut h = History::new("a tenth, ten times", Limit::bucket(1.0, 1000.0));
    for _ in 0..11 {
        h.take(TODAY, 0.1);
    }
    h.around_retry(0.1);
    out.push(h.finish());
    let mut h = History::new("a debt so large that single tokens vanish", Limit::bucket(1_000_000.0, 1000.0));
    for _ in 0..4 {
        h.charge(TODAY, 1_099_511_627_776.0);
    }
    h.charge(TODAY, 0.00001);
    h.take(TODAY + 1.0, 1.0);
    h.around_retry(1.0);
    out.push(h.finish());
    let mut h = History::new("ms by ms", Limit::bucket(1.0, 3.0).capacity(0.7));
    for i in 0..14 {
        h.take(TODAY + f64::from(i), 0.3);
    }
    out.push(h.finish());
    for seed in 0..30 {
        let limit = [
            Limit::bucket(10.0 / 3.0, 997.0).capacity(4.7),
            Limit::bucket(1e9 / 7.0, 1e9).capacity(1e3),
            Limit::window(0.1, 11.0).capacity(0.7).start(5.0),
            Limit::bucket(0.7, 60_000.0).capacity(0.9),
            Limit::bucket(86_399.0, 86_400_000.0).capacity(12.3),
            Limit::bucket(3e11, 1e9 + 7.0).capacity(7e5),
        ][seed as usize % 6];
        let most = limit.most();
        let how = Wander {
            ops: &["take", "take", "take", "charge", "give"],
            counts: &[most / 3.0, most / 7.0, most * 0.1, most * 0.999],
            steps: &[1.0, 2.0, 3.0, 17.0, 199.0, 4999.0],
        };
        out.push(wander(seed, limit, 10, how));
    }
    out
}
