//! Rates that adapt, and clients that come back, at a small size.

use tidegate_sim::cases::SEED;
use tidegate_sim::experiments::adaptive;
use tidegate_sim::experiments::herd::{Back, Herd, run};
use tidegate_sim::scenario::Limit;

#[test]
fn rates_that_adapt_use_the_server_follow_it_and_come_to_fair_shares() {
    for (seed, instances) in [(1, 2), (2, 10), (3, 40)] {
        for (increase, least) in [(0.05, 0.4), (0.01, 0.7)] {
            let adapted = adaptive::run(seed, instances, 400.0, Some(increase));
            for phase in &adapted.phases {
                assert!(phase.good > least, "{adapted:?}");
            }
            assert!(adapted.jain > 0.9, "{adapted:?}");
        }
        // Without it the server drowns.
        let fixed = adaptive::run(seed, instances, 400.0, None);
        assert!(fixed.phases[1].good < 0.1 && fixed.phases[1].bad > 0.9, "{fixed:?}");
    }
}

fn herd(windows: bool, back: Back) -> Herd {
    let limit = Limit { windows, rate: 100.0, period: 1000.0, capacity: 100.0 };
    run(SEED, limit, 1_000, back)
}

#[test]
fn jitter_spreads_a_herd_and_nobody_comes_too_early_or_never() {
    let told = herd(true, Back::AsTold);
    // All who are left come back in the ms in which the window opens.
    assert!(told.peak_1_ms >= 800, "{told:?}");
    let spread = herd(true, Back::Jitter(1.0));
    assert!(spread.peak_1_ms * 20 < told.peak_1_ms, "{spread:?}");
    for herd in [told, spread] {
        assert!(herd.done_s >= herd.least_s.floor() && herd.done_s < herd.least_s + 3.0, "{herd:?}");
    }
}

#[test]
fn who_reserves_asks_once() {
    for windows in [false, true] {
        let reserved = herd(windows, Back::Reserve);
        assert_eq!((reserved.peak_1_ms, reserved.asked_per_grant), (0, 1.0));
        assert!(
            reserved.done_s >= reserved.least_s.floor() && reserved.done_s < reserved.least_s + 2.0,
            "{reserved:?}"
        );
    }
}
