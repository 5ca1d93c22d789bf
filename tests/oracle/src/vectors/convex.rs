use super::TODAY;
use crate::history::History;
use crate::limit::Limit;

pub(crate) const ABOUT: &str = "Edge cases in which @convex-dev/rate-limiter 0.4.0 returned wrong results, with the \
right ones. The cases that are errors are in invalid.json.";

pub(crate) fn vectors() -> Vec<String> {
    let mut out = Vec::new();
    let bucket = Limit::bucket(10.0, 1000.0);
    let window = Limit::window(10.0, 1000.0).start(0.0);
    let mut h = History::new("maxReserved 0 lends nothing", bucket.max_reserved(0.0));
    h.take(TODAY, 10.0);
    h.reserve(TODAY, 100.0);
    h.reserve(TODAY, 1.0);
    out.push(h.finish());
    let mut h = History::new("a fractional count is fine", bucket);
    h.take(TODAY, 0.5);
    out.push(h.finish());
    let mut h = History::new("the clock back by 10 s costs nothing", bucket);
    h.takes(TODAY, &[(0.0, 5.0), (-10_000.0, 1.0)]);
    out.push(h.finish());
    let mut h = History::new("the clock back by 1 ms over a window's edge loses no window", window);
    h.takes(TODAY, &[(0.0, 5.0), (-1.0, 1.0)]);
    out.push(h.finish());
    for capacity in [10.0, 30.0] {
        let limit = window.start(TODAY + 1500.0).capacity(capacity);
        let mut h =
            History::new(&format!("a start in the future is a grid like any other, capacity {capacity}"), limit);
        h.takes(TODAY, &[(0.0, 1.0), (0.0, capacity), (500.0, 10.0)]);
        out.push(h.finish());
    }
    let mut h = History::new("start 0 is a start", window);
    h.take(TODAY + 1.0, 1.0);
    h.project(TODAY + 1.0);
    out.push(h.finish());
    let mut h = History::new("retryAt is whole, and right", Limit::bucket(7.0, 60_000.0));
    h.takes(TODAY, &[(0.0, 7.0), (0.0, 1.0)]);
    h.around_retry(1.0);
    out.push(h.finish());
    let mut h = History::new("2 shards, capacity 10, count 6", bucket.shards(2.0));
    h.takes(TODAY, &[(0.0, 6.0), (0.0, 6.0)]);
    h.around_retry(6.0);
    out.push(h.finish());
    let mut h = History::new("10 shards, rate 100, count 15, no rows yet", Limit::bucket(100.0, 1000.0).shards(10.0));
    h.take(TODAY, 15.0);
    out.push(h.finish());
    let mut h = History::new("getValue of 10 shards is the sum", Limit::bucket(100.0, 1000.0).shards(10.0));
    h.project(TODAY);
    h.take(TODAY, 10.0);
    h.project(TODAY);
    out.push(h.finish());
    let mut h = History::new("the kind changed on a live state, bucket to window", bucket);
    h.take(TODAY + 250.0, 7.5);
    h.config(window);
    h.takes(TODAY, &[(300.0, 1.0), (1000.0, 10.0)]);
    out.push(h.finish());
    let mut h = History::new("a capacity that is raised is used at once", bucket);
    h.take(TODAY, 10.0);
    h.config(bucket.capacity(20.0));
    h.take(TODAY + 2000.0, 20.0);
    out.push(h.finish());
    let mut h = History::new("capacity 0 is perfect spacing", bucket.capacity(0.0));
    h.take(TODAY, 1.0);
    h.reserve(TODAY, 1.0);
    h.reserve(TODAY, 1.0);
    h.reserve(TODAY, 1.0);
    out.push(h.finish());
    let mut h = History::new("exact-rate callers are never denied", Limit::bucket(10.0 / 3.0, 1000.0));
    h.take(TODAY, 10.0 / 3.0);
    for i in 1..8 {
        h.take(TODAY + f64::from(i) * 300.0, 1.0);
    }
    out.push(h.finish());
    out
}
