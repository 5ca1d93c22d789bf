use super::TODAY;
use super::wander::{Wander, wanders};
use crate::history::History;
use crate::limit::Limit;

pub(crate) const ABOUT: &str = "block: debt that is paid when the block ends. Until then, one token is denied.";

/// Asks for one token at the last ms of the block, and at its end.
fn around_the_end(h: &mut History) {
    let at = h.retry_at();
    h.take(at - 1.0, 1.0);
    h.check(at - 1.0, 0.5);
    h.take(at, 1.0);
    h.take(at, 1.0);
    h.project(at + 1.0);
}

fn on(kind: &str, limit: Limit) -> Vec<String> {
    let mut out = Vec::new();
    let named = |name: &str| History::new(&format!("{kind}: {name}"), limit);
    for (name, before) in [("a fresh key", 0.0), ("a key in use", 4.25), ("an empty key", 10.0), ("a debt", 13.0)] {
        for ms in [1.0, 700.0, 1000.0, 1001.0, 900_000.0, 1_099_511_627_776.0] {
            let mut h = named(&format!("{name}, for {ms} ms"));
            if before > 0.0 {
                h.charge(TODAY + 77.0, before);
            }
            h.block(TODAY + 400.0, ms);
            around_the_end(&mut h);
            out.push(h.finish());
        }
    }
    let mut h = named("a block in a block: the one that ends later counts");
    h.block(TODAY, 5000.0);
    h.block(TODAY + 1.0, 4999.0);
    h.block(TODAY + 2000.0, 100.0);
    h.block(TODAY + 2000.0, 60_000.0);
    h.block(TODAY + 2000.0, 60_000.0);
    h.block(TODAY + 61_999.0, 1.0);
    around_the_end(&mut h);
    out.push(h.finish());
    let mut h = named("a longer debt is not shortened");
    h.charge(TODAY, 500.0);
    h.block(TODAY + 1.0, 1000.0);
    around_the_end(&mut h);
    out.push(h.finish());
    let mut h = named("each operation on a blocked key");
    h.block(TODAY, 10_000.0);
    h.check(TODAY + 1.0, 1.0);
    h.takes(TODAY, &[(2.0, 0.0), (3.0, 11.0)]);
    h.reserve(TODAY + 4.0, 1.0);
    h.charge(TODAY + 5.0, 2.0);
    h.give(TODAY + 6.0, 1.5);
    h.project(TODAY + 7.0);
    let at = h.last().reset_at;
    h.check(at - 1.0, 10.0);
    h.take(at, 10.0);
    out.push(h.finish());
    let mut h = named("reset ends a block");
    h.block(TODAY, 10_000.0);
    h.reset(TODAY + 1.0);
    h.take(TODAY + 1.0, 1.0);
    out.push(h.finish());
    for back in [1.0, 5000.0, 3_600_000.0, 3_600_001.0] {
        let mut h = named(&format!("the clock is {back} ms behind the state"));
        h.take(TODAY, 1.0);
        h.block(TODAY - back, 2500.0);
        around_the_end(&mut h);
        out.push(h.finish());
        let mut h = named(&format!("the clock steps back by {back} ms in a block"));
        h.block(TODAY, 2500.0);
        h.take(TODAY - back, 1.0);
        h.block(TODAY - back, 2500.0 + back);
        around_the_end(&mut h);
        out.push(h.finish());
    }
    let mut h = named("a jump ahead, and back");
    h.block(TODAY + 1e10, 60_000.0);
    h.take(TODAY, 1.0);
    h.block(TODAY, 60_000.0);
    around_the_end(&mut h);
    out.push(h.finish());
    for (name, now) in [("0", 0.0), ("its latest reading", 4_503_599_627_370_496.0)] {
        let mut h = named(&format!("the clock is at {name}"));
        h.block(now, 1500.0);
        h.take(now, 1.0);
        out.push(h.finish());
    }
    out
}

/// Where rounding or the range of doubles shows.
fn extreme(limit: Limit, ms: f64) -> String {
    let Limit { rate, period, .. } = limit;
    let kind = if limit.opens() {
        "first request"
    } else if limit.start.is_some() {
        "window"
    } else {
        "bucket"
    };
    let capacity = limit.capacity.map_or(String::new(), |capacity| format!(", capacity {capacity}"));
    let mut h = History::new(&format!("{kind}, {rate:e} in {period} ms{capacity}, for {ms} ms"), limit);
    h.block(TODAY + 5.0, ms);
    if h.last().retry_at.is_some() {
        around_the_end(&mut h);
    } else {
        h.take(TODAY + 5.0 + ms, 1.0);
    }
    h.finish()
}

pub(crate) fn vectors() -> Vec<String> {
    let mut out = on("bucket", Limit::bucket(10.0, 1000.0));
    out.extend(on("window", Limit::window(10.0, 1000.0).start(0.0)));
    out.extend(on("first request", Limit::window(10.0, 1000.0).first_request()));
    let window = Limit::window(5.0, 86_400_000.0);
    for (kind, limit) in [("of days", window.start(0.0)), ("of days from the first request", window.first_request())] {
        let mut h = History::new(&format!("windows {kind}, for 15 minutes"), limit);
        h.take(TODAY, 1.0);
        h.block(TODAY + 60_000.0, 900_000.0);
        around_the_end(&mut h);
        out.push(h.finish());
    }
    let mut h = History::new("a block brings a window that began at a request no new tokens", window.first_request());
    h.take(TODAY, 4.0);
    h.block(TODAY + 60_000.0, 900_000.0);
    around_the_end(&mut h);
    h.around_retry(1.0);
    out.push(h.finish());
    for limit in [
        Limit::bucket(0.3, 7.0).capacity(0.7),
        Limit::bucket(10.0, 1000.0).capacity(0.0),
        Limit::bucket(1.0 / 3.0, 1000.0).capacity(4.7),
        Limit::bucket(1e9, 86_400_000.0),
        Limit::bucket(123_456.789, 999_983.0),
        Limit::bucket(1_099_511_627_776.0, 1.0),
        Limit::bucket(1.0, 1_099_511_627_776.0),
        Limit::bucket(1e-9, 1_099_511_627_776.0).capacity(3.0),
        Limit::bucket(5e-324, 1.0).capacity(2.0),
        Limit::bucket(1e-300, 1.0).capacity(1.0),
        Limit::window(0.3, 7.0).capacity(0.7).start(5.0),
        Limit::window(1.000_000_1, 1.0).start(0.0),
        Limit::window(1_099_511_627_775.9, 1.0).start(0.0),
        Limit::window(0.1, 11.0).capacity(2.0).start(5.0),
        Limit::window(5e-324, 1.0).capacity(2.0).start(0.0),
        Limit::window(1.000_000_1, 1.0).first_request(),
        Limit::window(7.7, 11.0).capacity(0.0).first_request(),
        Limit::window(0.1, 11.0).capacity(2.0).first_request(),
        Limit::window(1_099_511_627_775.9, 1_099_511_627_775.0).first_request(),
    ] {
        for ms in [1.0, 999.0, 604_800_000.0, 1_099_511_627_776.0] {
            out.push(extreme(limit, ms));
        }
    }
    let limits = [
        Limit::bucket(10.0, 1000.0),
        Limit::window(10.0, 1000.0).capacity(15.0).start(13.0),
        Limit::window(4.0, 1000.0).capacity(6.0).first_request(),
        Limit::bucket(1.7, 123.0).capacity(5.0).max_reserved(5.0),
        Limit::window(2.5, 60.0).first_request().max_reserved(5.0),
    ];
    let how = Wander {
        ops: &["take", "take", "block", "reserve", "check", "give", "charge", "project", "reset"],
        counts: &[1.0, 0.0, 2.25, 4.9],
        steps: &[0.0, 1.0, 45.0, 600.0, 2500.0, -300.0],
    };
    out.extend(wanders(&limits, 30, 14, how));
    out
}
