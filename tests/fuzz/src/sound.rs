//! Properties of every policy document that passes the check.

use tidegate_core::{Reason, State};
use tidegate_policy::Document;

/// Panics unless a fresh key grants the default cost under every limit: no limit is closed forever.
pub fn is_sound(document: &Document) {
    for rule in document.limits() {
        let tiers = rule.tiers.iter().flat_map(|tiers| &tiers.settings).map(|tier| &tier.limit);
        for limit in tiers.chain([&rule.limit]) {
            let taken = limit.policy.bucket(0.0).take(None::<State>, 1e12, rule.cost.default, rule.reserve);
            // No document is rejected for a debt that is paid only after the latest clock reading.
            assert!(taken.decision.ok || taken.decision.reason == Some(Reason::ExceedsClock), "{rule:?}");
            assert!(rule.cost.default >= 0.0 && rule.cost.min <= rule.cost.default);
            assert!(limit.grantable >= rule.cost.default);
        }
    }
}
