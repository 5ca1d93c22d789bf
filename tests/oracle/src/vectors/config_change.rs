use super::TODAY;
use crate::history::History;
use crate::limit::Limit;
use crate::random::Random;

pub(crate) const ABOUT: &str = "A policy that changes while a state exists: the next evaluation uses the new policy.";

/// A config that changes after some calls, and back.
pub(crate) fn changed(name: &str, before: Limit, after: Limit) -> String {
    let mut h = History::new(name, before);
    h.take(TODAY + 100.0, 7.0);
    h.reserve(TODAY + 150.0, 6.0);
    h.config(after);
    h.check(TODAY + 150.0, 1.0);
    h.take(TODAY + 200.0, 2.0);
    h.reserve(TODAY + 1200.0, 2.0);
    h.take(TODAY + 2300.0, 3.0);
    h.config(before);
    h.take(TODAY + 2301.0, 3.0);
    h.project(TODAY + 100_000.0);
    h.check(TODAY + 100_000.0, before.most());
    h.finish()
}

pub(crate) fn vectors() -> Vec<String> {
    let bucket = Limit::bucket(10.0, 1000.0);
    let window = Limit::window(10.0, 1000.0).start(0.0);
    let mut out = Vec::new();
    for (name, before, after) in [
        ("capacity lowered", bucket.capacity(20.0), bucket.capacity(3.0)),
        ("capacity raised", bucket, bucket.capacity(50.0)),
        ("capacity to 0", bucket, bucket.capacity(0.0)),
        ("rate lowered", bucket, Limit::bucket(1.0, 1000.0)),
        ("rate raised", bucket, Limit::bucket(100.0, 1000.0)),
        ("period longer", bucket, Limit::bucket(10.0, 60_000.0)),
        ("maxReserved lowered", bucket, bucket.max_reserved(1.0)),
        ("window: capacity lowered", window.capacity(20.0), window.capacity(3.0)),
        ("window: capacity raised", window, window.capacity(50.0)),
        ("window: period longer", window, Limit::window(10.0, 60_000.0).start(0.0)),
        ("window: period shorter", Limit::window(10.0, 60_000.0).start(0.0), window),
        ("window: start moved", window, window.start(321.0)),
        ("window: start to the default", window, Limit::window(10.0, 1000.0)),
        ("bucket to window", bucket, window),
        ("window to bucket", window, bucket),
        ("bucket to a window in the future", bucket, window.start(TODAY + 2500.0)),
    ] {
        out.push(changed(name, before, after));
        let mut h = History::new(&format!("{name}, on a full state"), before);
        h.take(TODAY + 100.0, 1.0);
        h.give(TODAY + 100.0, 1.0);
        h.config(after);
        h.takes(TODAY, &[(100.0, 2.0), (1100.0, 2.0)]);
        out.push(h.finish());
    }
    for seed in 0..14 {
        let mut random = Random(seed);
        let mut limits = Vec::new();
        for _ in 0..4 {
            let rate = random.of(&[0.5, 3.0, 10.0, 333.0]);
            let period = random.of(&[10.0, 777.0, 1000.0, 60_000.0]);
            let limit = if random.below(2) == 0 {
                Limit::bucket(rate, period)
            } else {
                Limit::window(rate, period).start(random.below(1000) as f64)
            };
            limits.push(if random.below(2) == 0 { limit.capacity(random.of(&[0.0, 2.5, 40.0])) } else { limit });
        }
        let mut now = TODAY;
        let mut h = History::new(&format!("at random, {seed}"), limits[0]);
        for i in 0..12 {
            if i % 3 == 2 {
                h.config(limits[i / 3]);
            }
            let count = random.of(&[0.5, 1.0, 2.0]);
            match random.below(4) {
                0 => drop(h.reserve(now, count)),
                1 => drop(h.charge(now, count)),
                _ => drop(h.take(now, count)),
            }
            now += random.of(&[0.0, 1.0, 333.0, 1000.0, 5000.0]);
        }
        out.push(h.finish());
    }
    out
}
