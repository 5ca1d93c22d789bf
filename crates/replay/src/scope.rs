//! Which requests a limit applies to, by the fields that are read of each.

/// The requests that a limit applies to, and their cost.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// Index of its key in the record; `None`: all requests share the limit.
    pub(crate) key: Option<usize>,
    /// Slots, and the text that each must hold.
    pub(crate) matches: Vec<(usize, String)>,
    /// Whether it applies only to requests that no other limit applies to; those in shadow mode do not count.
    pub(crate) fallback: bool,
    /// Whether it is in shadow mode, and leaves its requests to the fallback.
    pub(crate) shadow: bool,
    pub(crate) cost: Cost,
}

#[derive(Clone, Debug)]
pub(crate) enum Cost {
    /// Always the same.
    Fixed(f64),
    /// The number in a column; a line without it is a bad line.
    Column(usize),
    /// The number that the client states, within bounds; `default` if it states no usable number.
    Stated { slot: usize, default: f64, min: f64, max: f64 },
}

impl Cost {
    /// The slot in which the client states it.
    pub(crate) fn stated(&self) -> Option<usize> {
        match self {
            Cost::Stated { slot, .. } => Some(*slot),
            Cost::Fixed(_) | Cost::Column(_) => None,
        }
    }
}
