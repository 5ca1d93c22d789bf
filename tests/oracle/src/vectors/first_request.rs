use super::TODAY;
use super::config_change::changed;
use super::fixed_window::emptied;
use super::wander::{Wander, wander};
use crate::history::History;
use crate::limit::Limit;

pub(crate) const ABOUT: &str = "Fixed windows that begin at a key's first request: the first request after the key is \
full again opens a new window. Debt is paid on the key's own grid.";

const END: f64 = 4_503_599_627_370_496.0;

fn window(rate: f64, period: f64) -> Limit {
    Limit::window(rate, period).first_request()
}

fn by_hand() -> Vec<String> {
    let mut out = Vec::new();
    let ten = window(10.0, 1000.0);
    let mut h = History::new("a window begins at the first request and ends one period later", ten);
    h.takes(TODAY, &[(123.0, 7.0), (1100.0, 3.0), (1122.0, 1.0), (1123.0, 10.0), (2122.0, 1.0), (2123.0, 1.0)]);
    out.push(h.finish());
    let mut h = History::new("a window that ended long ago gives its grid up", ten);
    h.takes(TODAY, &[(0.0, 10.0), (3456.0, 4.0), (4455.0, 7.0), (4456.0, 7.0)]);
    out.push(h.finish());
    let mut h = History::new("debt is paid on the key's own grid", ten);
    h.take(TODAY + 7.0, 1.0);
    h.charge(TODAY + 500.0, 24.0);
    h.takes(TODAY, &[(1006.0, 1.0), (1007.0, 1.0), (2500.0, 5.0), (2600.0, 1.0), (3007.0, 1.0)]);
    out.push(h.finish());
    let mut h = History::new("reservations are paid on the key's own grid", ten.max_reserved(25.0));
    h.reserve(TODAY + 400.0, 12.0);
    h.reserve(TODAY + 500.0, 20.0);
    h.reserve(TODAY + 600.0, 4.0);
    h.reserve(TODAY + 1400.0, 4.0);
    h.take(TODAY + 5000.0, 10.0);
    out.push(h.finish());
    let mut h = History::new("tokens given back fill a window before its end: the next request opens another", ten);
    h.take(TODAY, 10.0);
    h.give(TODAY + 10.0, 4.0);
    h.take(TODAY + 20.0, 4.0);
    h.give(TODAY + 30.0, 10.0);
    h.check(TODAY + 35.0, 1.0);
    h.takes(TODAY, &[(40.0, 10.0), (1000.0, 1.0), (1040.0, 1.0)]);
    out.push(h.finish());
    let mut h = History::new("a check and a count of 0 open no window", ten);
    h.check(TODAY, 1.0);
    h.take(TODAY + 1.0, 0.0);
    h.give(TODAY + 2.0, 3.0);
    h.take(TODAY + 3.0, 10.0);
    h.check(TODAY + 1002.0, 1.0);
    h.check(TODAY + 1003.0, 1.0);
    h.take(TODAY + 1500.0, 2.0);
    out.push(h.finish());
    let mut h = History::new("a clock that steps back stays in the window", ten);
    h.takes(TODAY, &[(0.0, 6.0), (-700.0, 3.0), (-3_600_000.0, 2.0), (999.0, 2.0), (1000.0, 2.0), (999.0, 2.0)]);
    out.push(h.finish());
    let mut h = History::new("a state of a broken clock is none", ten);
    h.takes(TODAY, &[(3_600_001.0, 10.0), (0.0, 4.0), (999.0, 7.0), (1000.0, 7.0)]);
    out.push(h.finish());
    let mut h = History::new("a full state ahead of the clock keeps its start", ten);
    h.take(TODAY, 2.0);
    h.give(TODAY, 2.0);
    h.takes(TODAY, &[(-500.0, 2.0), (999.0, 9.0), (1000.0, 9.0)]);
    out.push(h.finish());
    let mut h = History::new("a count above the capacity", window(2.0, 1000.0));
    h.takes(0.0, &[(5.0, 3.0), (5.0, 0.0)]);
    out.push(h.finish());
    let mut h = History::new("the clock's end", window(2.0, 1000.0));
    h.takes(END, &[(-1000.0, 2.0), (-1000.0, 1.0), (-1.0, 2.0), (0.0, 1.0), (0.0, 2.0)]);
    out.push(h.finish());
    let mut h = History::new("reset and project", ten);
    h.take(TODAY, 10.0);
    h.project(TODAY + 999.0);
    h.project(TODAY + 1234.0);
    h.reset(TODAY + 500.0);
    h.take(TODAY + 600.0, 3.0);
    h.project(TODAY + 1599.0);
    h.project(TODAY + 1600.0);
    out.push(h.finish());
    out
}

fn changes() -> Vec<String> {
    let ten = window(10.0, 1000.0);
    let mut out = Vec::new();
    for (name, before, after) in [
        ("capacity lowered", ten.capacity(20.0), ten.capacity(3.0)),
        ("capacity raised", ten, ten.capacity(50.0)),
        ("capacity to 0", ten, ten.capacity(0.0)),
        ("period longer", ten, window(10.0, 60_000.0)),
        ("period shorter", window(10.0, 60_000.0), ten),
        ("to the UTC grid", ten, Limit::window(10.0, 1000.0).start(0.0)),
        ("to the key's grid", ten, Limit::window(10.0, 1000.0)),
        ("from the UTC grid", Limit::window(10.0, 1000.0).start(0.0), ten),
        ("to a bucket", ten, Limit::bucket(10.0, 1000.0)),
        ("from a bucket", Limit::bucket(10.0, 1000.0), ten),
    ] {
        out.push(changed(&format!("config change: {name}"), before, after));
    }
    out
}

pub(crate) fn vectors() -> Vec<String> {
    let mut out = by_hand();
    out.extend(changes());
    for (name, limit, count) in [
        ("ten a second", window(10.0, 1000.0), 3.0),
        ("carried over up to 25", window(10.0, 1000.0).capacity(25.0), 8.0),
        ("capacity below the rate", window(10.0, 1000.0).capacity(4.0), 3.0),
        ("a day", window(100.0, 86_400_000.0), 60.0),
        ("a period of 7 ms", window(1.0, 7.0), 1.0),
        ("a period of 1 ms", window(0.1, 1.0).capacity(1.0), 0.7),
        ("the longest period", window(2.0, 1_099_511_627_776.0), 2.0),
        ("a rate of a third of the capacity", window(1.0, 100.0).capacity(3.0), 3.0),
    ] {
        for start in [0.0, TODAY + 999.0] {
            out.push(emptied(&format!("{name}, from {start}"), limit, start, count));
        }
    }
    for seed in 0..30 {
        let limit = [
            window(10.0, 1000.0),
            window(3.5, 60_000.0).capacity(9.0),
            window(0.1, 3.0).capacity(1.0).max_reserved(2.0),
            window(100.0, 86_400_000.0),
            window(3.0, 777.0).capacity(0.0),
        ][seed as usize % 5];
        let (most, period) = (limit.most().max(limit.rate), limit.period);
        let how = Wander {
            ops: &["take", "take", "take", "check", "give", "charge", "reserve", "project", "reset"],
            counts: &[1.0, most / 2.0, most / 3.0, most, 0.1],
            steps: &[0.0, 1.0, (period / 4.0).floor(), period - 1.0, period, 3.0 * period, -5.0],
        };
        out.push(wander(seed, limit, 14, how));
    }
    out
}
