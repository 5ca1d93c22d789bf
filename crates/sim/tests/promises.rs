//! What is promised of a fleet, whatever goes wrong. Small runs of the report's own scenarios.

use tidegate_sim::cases::{self, MODES};
use tidegate_sim::figures::Figures;
use tidegate_sim::scenario::{Demand, Faults, Lending, Limit, Mode, Network, Scenario};
use tidegate_sim::world::run;

fn figures(scenario: &Scenario) -> Figures {
    run(scenario).expect("a legal limit")
}

/// Each mode, with several seeds.
fn each(scenario: impl Fn(Mode) -> Scenario, check: impl Fn(&Scenario, Figures)) {
    for mode in MODES {
        for seed in [1, 2, 3] {
            let scenario = Scenario { seed, ..scenario(mode) };
            let figures = figures(&scenario);
            assert!(figures.calls > 100, "{scenario:?}");
            check(&scenario, figures);
        }
    }
}

#[test]
fn nobody_is_granted_more_than_the_limit_whatever_goes_wrong() {
    for windows in [false, true] {
        let faulty = |mode| {
            let scenario = cases::faulty("small", 20, 50, 3_000, mode);
            Scenario { limit: Limit { windows, period: 500.0, ..scenario.limit }, ..scenario }
        };
        each(faulty, |scenario, figures| {
            assert_eq!(figures.over_admitted, 0.0, "{scenario:?}");
            assert!(figures.unanswered > 0.0 && figures.stranded > 0.0, "nothing went wrong: {figures:?}");
        });
    }
}

#[test]
fn shards_keep_the_whole_limit_unless_the_stores_clock_is_set_back() {
    for seed in 1..=6 {
        let scenario = cases::faulty("small", 20, 50, 3_000, Mode::Shards { shards: 8 });
        let faults = Faults { store_steps_ms: 0, ..scenario.faults };
        let right = Scenario { seed, faults, ..scenario.clone() };
        assert_eq!(figures(&right).over_together, 0.0, "{right:?}");
        // A shard that was not asked meanwhile earns the time once more that the clock was set back by.
        let set_back = Scenario { seed, ..scenario };
        let most = set_back.limit.earned(0.0, f64::from(set_back.faults.store_steps_ms));
        assert!(figures(&set_back).over_together <= most, "{set_back:?}");
    }
}

#[test]
fn every_token_is_granted_in_hand_or_stranded() {
    each(
        |mode| cases::faulty("small", 20, 20, 3_000, mode),
        |scenario, figures| {
            assert_eq!(figures.unaccounted, 0.0, "{scenario:?}");
        },
    );
    each(
        |mode| cases::hot("small", 20, 3.0, mode),
        |scenario, figures| {
            assert_eq!((figures.unaccounted, figures.stranded), (0.0, 0.0), "{scenario:?}");
        },
    );
}

#[test]
fn no_token_is_granted_twice_where_others_are_mostly_quicker() {
    // Round trips take as long as the tokens for a call, and some far longer.
    let contended = |mode| {
        let scenario = cases::scarce("small", 20, 100.0, 3.0, mode);
        Scenario {
            network: Network { median_us: 8_000.0, sigma: 1.0, loss: 0.0 },
            demand: Demand { most: 20, ..scenario.demand },
            limit: Limit { capacity: 40.0, ..scenario.limit },
            ..scenario
        }
    };
    each(contended, |scenario, figures| {
        assert_eq!((figures.over_admitted, figures.unaccounted), (0.0, 0.0), "{scenario:?}");
    });
}

#[test]
fn all_that_there_is_is_granted_where_each_call_asks_the_store() {
    for mode in [Mode::Exact, Mode::Batch { turn_us: 1_000 }, Mode::Shards { shards: 8 }] {
        for times in [0.5, 1.0, 3.0] {
            let figures = figures(&cases::hot("small", 20, times, mode));
            assert!((0.98..=1.02).contains(&figures.utilization), "{mode:?} {times}: {figures:?}");
        }
    }
}

#[test]
fn a_lease_grants_what_there_is_and_asks_less_where_there_is_enough() {
    let ample = figures(&cases::hot("small", 20, 0.5, Mode::Lease(Lending::DEFAULT)));
    assert_eq!((ample.utilization, ample.denied), (1.0, 0.0), "{ample:?}");
    assert!(ample.steps_per_call < 0.25, "{ample:?}");
    for times in [1.5, 4.0] {
        let few = figures(&cases::scarce("small", 20, 200.0, times, Mode::Lease(Lending::DEFAULT)));
        assert!(few.utilization > 0.9, "{times}: {few:?}");
    }
}

#[test]
fn a_lease_lets_no_line_grow_where_there_is_too_little() {
    for (nodes, rate) in [(1, 1_000.0), (1, 10_000.0), (5, 1_000.0), (50, 200.0)] {
        for times in [1.1, 4.0] {
            let figures = figures(&cases::scarce("small", nodes, rate, times, Mode::Lease(Lending::DEFAULT)));
            // Of the simulation's time: a few round trips.
            assert!(figures.unanswered == 0.0 && figures.wait_p99_ms < 10.0, "{nodes} {rate} {times}: {figures:?}");
        }
    }
}

#[test]
fn equals_get_equal_shares_but_for_chance() {
    each(
        |mode| cases::hot("small", 20, 2.0, mode),
        |scenario, figures| {
            assert!(figures.jain > figures.jain_ideal - 0.05, "{scenario:?}: {figures:?}");
        },
    );
}

#[test]
fn a_small_demand_is_not_starved_by_a_large_one() {
    each(
        |mode| cases::uneven("small", 20, mode),
        |scenario, figures| {
            assert!(figures.small_share > 0.7 * figures.large_share, "{scenario:?}: {figures:?}");
        },
    );
}

#[test]
fn a_denials_time_is_right_where_one_node_has_the_limit_for_itself() {
    let alone = |mode| {
        let scenario = cases::scarce("small", 1, 20.0, 3.0, mode);
        // One call at a time: what is heard was not overtaken on the way.
        Scenario { network: Network { median_us: 10.0, sigma: 0.0, loss: 0.0 }, ..scenario }
    };
    each(alone, |scenario, figures| {
        assert!(figures.denied > 0.3, "{figures:?}");
        assert!(figures.honest > 0.98, "{scenario:?}: {figures:?}");
    });
}

#[test]
fn skew_between_nodes_changes_nothing_at_the_store() {
    for mode in [Mode::Exact, Mode::Batch { turn_us: 1_000 }, Mode::Shards { shards: 8 }] {
        let right = cases::hot("small", 10, 2.0, mode);
        let skewed = Scenario { faults: Faults { skew_ms: 3_600_000, ..Faults::default() }, ..right.clone() };
        assert_eq!(figures(&right), figures(&skewed), "{mode:?}");
    }
}

#[test]
fn large_counts_and_capacities_of_nothing_are_legal() {
    each(
        |mode| {
            let scenario = cases::hot("small", 5, 2.0, mode);
            Scenario {
                demand: Demand { most: 200, per_second: 200.0, ..scenario.demand },
                limit: Limit { capacity: 150.0, ..scenario.limit },
                ..scenario
            }
        },
        |scenario, figures| assert_eq!((figures.over_admitted, figures.unaccounted), (0.0, 0.0), "{scenario:?}"),
    );
}
