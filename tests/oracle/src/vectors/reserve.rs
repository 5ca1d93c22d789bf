use super::TODAY;
use super::wander::{Wander, wanders};
use crate::history::History;
use crate::limit::Limit;

pub(crate) const ABOUT: &str = "Reservations: tokens that are taken now, for use at retryAt. maxReserved bounds the \
tokens that may be owed.";

pub(crate) fn vectors() -> Vec<String> {
    let mut out = Vec::new();
    for (name, limit) in [
        ("no bound", Limit::bucket(10.0, 1000.0)),
        ("at most 15 owed", Limit::bucket(10.0, 1000.0).max_reserved(15.0)),
        ("maxReserved 0 lends nothing", Limit::bucket(10.0, 1000.0).max_reserved(0.0)),
        ("capacity 0 is perfect spacing", Limit::bucket(3.0, 1000.0).capacity(0.0)),
        ("capacity 0, at most one owed", Limit::bucket(3.0, 1000.0).capacity(0.0).max_reserved(1.0)),
        ("a window, no bound", Limit::window(10.0, 1000.0).start(0.0)),
        ("a window, at most 15 owed", Limit::window(10.0, 1000.0).start(0.0).max_reserved(15.0)),
        ("a window, capacity 0", Limit::window(3.0, 1000.0).capacity(0.0).start(400.0)),
        ("fractional rate", Limit::bucket(0.7, 1000.0).capacity(2.0).max_reserved(3.3)),
    ] {
        for count in [1.0, 4.0, 10.5, 0.0] {
            let mut h = History::new(&format!("{name}, count {count}"), limit);
            for i in 0..4 {
                h.reserve(TODAY + f64::from(i) * 7.0, count);
            }
            h.take(TODAY + 30.0, count);
            h.around_any_retry(count);
            h.reserve(TODAY + 60_000.0, count);
            out.push(h.finish());
        }
    }
    let mut h = History::new(
        "more than capacity and reserve together is never granted",
        Limit::bucket(10.0, 1000.0).max_reserved(5.0),
    );
    h.reserve(TODAY, 15.0);
    h.reserve(TODAY, 15.5);
    h.reserve(TODAY, 1.0);
    out.push(h.finish());
    let mut h = History::new("a debt beyond the clock's end is denied", Limit::bucket(1e-6, 1_099_511_627_776.0));
    h.reserve(TODAY, 1.0);
    h.charge(TODAY, 5.0);
    h.take(TODAY, 0.0);
    out.push(h.finish());
    let limits = [
        Limit::bucket(10.0, 1000.0).max_reserved(20.0),
        Limit::bucket(0.9, 350.0).capacity(2.0),
        Limit::window(6.0, 500.0).max_reserved(10.0).start(7.0),
        Limit::bucket(5.0, 1000.0).capacity(0.0).max_reserved(10.0),
    ];
    let how = Wander {
        ops: &["take", "reserve", "reserve", "check", "project"],
        counts: &[1.0, 2.0, 0.5, 3.3],
        steps: &[0.0, 1.0, 100.0, 650.0, 1000.0],
    };
    out.extend(wanders(&limits, 20, 12, how));
    out
}
