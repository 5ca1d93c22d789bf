/**
 * A clock that no correction of the host's time moves, ms from any origin: deadlines and durations are measured by it.
 * QuickJS and plain Hermes lack `performance`; there it is `Date.now`, and a corrected clock shortens or prolongs one wait.
 */
export const steadyNow: () => number = typeof performance === "undefined" ? Date.now : () => performance.now();
