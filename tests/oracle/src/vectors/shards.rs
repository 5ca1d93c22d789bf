use super::TODAY;
use super::wander::{Wander, wanders};
use crate::history::History;
use crate::limit::Limit;

pub(crate) const ABOUT: &str = "Limits with `shards` in stores that keep all rows in one place: such a limit is one \
bucket, with the same decisions and state as without `shards`.";

pub(crate) fn vectors() -> Vec<String> {
    let mut out = Vec::new();
    for n in [2.0, 10.0] {
        for (kind, limit) in [
            ("bucket", Limit::bucket(100.0, 1000.0).shards(n)),
            ("bucket with reserve", Limit::bucket(10.0, 1000.0).capacity(7.0).max_reserved(9.0).shards(n)),
            ("window", Limit::window(100.0, 1000.0).start(0.0).shards(n)),
            ("window, capacity above the rate", Limit::window(1.0, 100.0).capacity(33.0).shards(n)),
        ] {
            let most = limit.most();
            let mut h = History::new(&format!("{kind}, {n} shards: one by one"), limit);
            h.project(TODAY);
            for i in 0..5 {
                h.take(TODAY + f64::from(i), most / n);
            }
            h.project(TODAY + 5.0);
            out.push(h.finish());
            let mut h = History::new(&format!("{kind}, {n} shards: any count up to the whole capacity"), limit);
            h.takes(TODAY, &[(0.0, most), (0.0, 1.0)]);
            let at = h.around_retry(1.0);
            h.take(at, most * 1.5);
            h.take(at, most);
            h.around_retry(most);
            out.push(h.finish());
            let mut h = History::new(&format!("{kind}, {n} shards: give, charge, check, reset"), limit);
            h.give(TODAY, 1.0);
            h.take(TODAY, 1.0);
            h.give(TODAY, 0.5);
            h.charge(TODAY + 3.0, most * 1.25);
            h.check(TODAY + 3.0, 1.0);
            h.check(TODAY + 3.0, 0.0);
            h.give(TODAY + 4.0, most * 5.0);
            h.charge(TODAY + 4.0, 0.0);
            h.reset(TODAY + 4.0);
            h.take(TODAY + 4.0, most);
            out.push(h.finish());
            let mut h = History::new(&format!("{kind}, {n} shards: reservations"), limit);
            h.reserve(TODAY, most);
            for _ in 0..3 {
                h.reserve(TODAY + 1.0, 2.0);
            }
            h.reserve(TODAY + 1.0, most);
            h.take(TODAY + 2.0, 1.0);
            out.push(h.finish());
        }
    }
    let limit = Limit::bucket(10.0, 1000.0).shards(2.0);
    let mut h = History::new("a reservation of more than one shard could lend", limit);
    h.reserve(TODAY, 25.0);
    h.reserve(TODAY + 700.0, 8.0);
    h.reserve(TODAY + 700.0, 30.0);
    let at = h.retry_at();
    h.check(at - 1.0, 0.0);
    h.check(at, 0.0);
    out.push(h.finish());
    let mut h = History::new("a broken clock heals", limit);
    h.charge(TODAY + 1e10, 50.0);
    h.check(TODAY, 10.0);
    h.project(TODAY);
    h.takes(TODAY, &[(0.0, 3.0), (0.0, 7.0), (0.0, 1.0)]);
    out.push(h.finish());
    let mut h = History::new("a change of policy, and of the number of shards", limit);
    h.take(TODAY, 9.0);
    h.config(limit.capacity(4.0));
    h.takes(TODAY, &[(100.0, 2.0), (1000.0, 4.0)]);
    h.config(limit.capacity(40.0).shards(5.0));
    h.take(TODAY + 1500.0, 5.0);
    out.push(h.finish());
    let limits = [
        Limit::bucket(10.0, 1000.0).shards(3.0),
        Limit::window(10.0, 1000.0).capacity(15.0).shards(4.0),
        Limit::bucket(1.7, 123.0).capacity(5.0).max_reserved(5.0).shards(2.0),
        Limit::window(2.5, 60.0).start(13.0).max_reserved(5.0).shards(5.0),
        Limit::bucket(100.0, 60_000.0).capacity(0.0).shards(3.0),
    ];
    let how = Wander {
        ops: &["take", "take", "take", "reserve", "check", "give", "charge", "project"],
        counts: &[1.0, 0.0, 2.3, 4.9],
        steps: &[-100.0, 0.0, 1.0, 45.0, 600.0, 2500.0],
    };
    out.extend(wanders(&limits, 10, 10, how));
    out
}
