//! One seed, one outcome.

use tidegate_sim::cases::{self, MODES};
use tidegate_sim::scenario::Scenario;
use tidegate_sim::world::run;

fn text(scenario: &Scenario) -> String {
    serde_json::to_string(&run(scenario).expect("a legal limit")).expect("JSON")
}

#[test]
fn the_same_seed_comes_to_the_same_figures_to_the_byte_and_another_to_others() {
    for mode in MODES {
        let scenario = cases::faulty("small", 20, 50, 2_000, mode);
        assert_eq!(text(&scenario), text(&scenario.clone()), "{mode:?}");
        let other = Scenario { seed: scenario.seed + 1, ..scenario.clone() };
        assert_ne!(text(&scenario), text(&other), "{mode:?}");
    }
}
