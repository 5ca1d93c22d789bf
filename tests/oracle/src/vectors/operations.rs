use super::TODAY;
use super::wander::{Wander, wanders};
use crate::history::History;
use crate::limit::Limit;

pub(crate) const ABOUT: &str = "give, charge, check, reset and project.";

pub(crate) fn vectors() -> Vec<String> {
    let mut out = Vec::new();
    for (kind, limit) in [("bucket", Limit::bucket(10.0, 1000.0)), ("window", Limit::window(10.0, 1000.0).start(0.0))] {
        let named = |name: &str| History::new(&format!("{kind}: {name}"), limit);
        let mut h = named("give brings back, up to the capacity");
        h.take(TODAY, 8.0);
        h.give(TODAY, 3.0);
        h.take(TODAY, 5.0);
        h.give(TODAY + 20.0, 100.0);
        h.give(TODAY + 20.0, 0.0);
        h.take(TODAY + 20.0, 10.0);
        out.push(h.finish());
        let mut h = named("give to a fresh key writes nothing");
        h.give(TODAY, 3.0);
        h.give(TODAY, 0.0);
        h.take(TODAY, 1.0);
        out.push(h.finish());
        let mut h = named("give to a debt");
        h.charge(TODAY, 25.0);
        h.give(TODAY + 1.0, 5.0);
        h.give(TODAY + 1.0, 9.0);
        h.give(TODAY + 1.0, 9.0);
        out.push(h.finish());
        let mut h = named("charge always succeeds and goes below any floor");
        h.charge(TODAY, 4.0);
        h.charge(TODAY, 1000.0);
        h.take(TODAY, 1.0);
        h.charge(TODAY, 0.0);
        let at = h.around_retry(0.0);
        h.take(at, 1.0);
        out.push(h.finish());
        let mut h = named("charge of 0 on a fresh key writes nothing");
        h.charge(TODAY, 0.0);
        out.push(h.finish());
        let mut h = named("check decides as take does and writes nothing");
        h.check(TODAY, 4.0);
        h.take(TODAY, 4.0);
        h.check(TODAY, 7.0);
        h.step("check", TODAY, Some(7.0), true);
        h.check(TODAY, 11.0);
        h.take(TODAY, 6.0);
        out.push(h.finish());
        let mut h = named("reset forgets, debt included");
        h.reset(TODAY);
        h.charge(TODAY, 30.0);
        h.reset(TODAY + 1.0);
        h.take(TODAY + 1.0, 10.0);
        out.push(h.finish());
        let mut h = named("project shows what is there, debt included");
        h.project(TODAY);
        h.take(TODAY + 123.0, 8.0);
        h.project(TODAY + 123.0);
        h.project(TODAY + 456.0);
        h.charge(TODAY + 456.0, 30.0);
        h.project(TODAY + 457.0);
        h.project(TODAY + 1_000_000.0);
        out.push(h.finish());
        let mut h = named("from resetAt on, a dropped state changes nothing");
        h.take(TODAY + 77.0, 7.3);
        let at = h.last().reset_at;
        h.check(at - 1.0, 10.0);
        h.check(at, 10.0);
        h.reset(at);
        h.check(at, 10.0);
        out.push(h.finish());
        let mut h = named("a count left out is one token");
        for op in ["take", "check", "give", "charge"] {
            h.step(op, TODAY, None, false);
        }
        out.push(h.finish());
    }
    let limits = [
        Limit::bucket(10.0, 1000.0),
        Limit::window(10.0, 1000.0).capacity(15.0),
        Limit::bucket(1.7, 123.0).capacity(5.0).max_reserved(5.0),
        Limit::window(2.5, 60.0).start(13.0).max_reserved(5.0),
    ];
    let how = Wander {
        ops: &["take", "reserve", "check", "give", "charge", "project", "reset", "take"],
        counts: &[1.0, 0.0, 2.25, 4.9],
        steps: &[0.0, 1.0, 45.0, 600.0, 2500.0],
    };
    out.extend(wanders(&limits, 24, 14, how));
    out
}
