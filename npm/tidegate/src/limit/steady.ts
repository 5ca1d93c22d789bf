/**
 * A clock that no correction of the host's time moves, ms from any origin: deadlines and durations are measured by it.
 * QuickJS and plain Hermes lack `performance`; there it is `Date.now`, and a corrected clock shortens or prolongs one wait.
 */
export const steadyNow: () => number = typeof performance === "undefined" ? Date.now : () => performance.now();

/** Ms by which a timer of an idle process may be late. */
const JITTER = 5;
/** Ms by which a timer counts as in time though this clock is behind it, as the rates of two clocks differ a little. */
const EARLY = 0.1;
/** Ms by which no host's timer is early: one that is belongs to a test's fake timers, which do not move this clock. */
const FAKE = 2;

/**
 * Resolves when the timers that were due at `at` have run. Where this process did not run then, it may read a reply first,
 * and the timers move the deadline. `undefined` where nothing is overdue.
 */
export function overdueTimers(at: number): Promise<void> | undefined {
  if (steadyNow() - at < JITTER) return undefined;
  return new Promise((resolve) => void setTimeout(resolve, 1));
}

/**
 * Calls `then` after `ms`; the result cancels it. A timer that fires late fires before the replies that have arrived
 * meanwhile are read: the process was busy, and no peer was slow. It then waits as long again as it was late, at most `ms`.
 * One that fires early, as those of Node.js do by less than 1 ms, waits for the rest. `unref`: it does not keep the process
 * alive. `deadline` is moved to the new end of a wait that is prolonged, by this clock.
 */
export function afterWaiting(ms: number, then: () => void, unref = false, deadline?: { at: number }): () => void {
  const due = steadyNow() + ms;
  let timer = setTimeout(() => {
    const now = steadyNow();
    const late = now - due;
    if (late < -FAKE || (late > -EARLY && late < JITTER)) return then();
    const rest = late < 0 ? Math.ceil(-late) : Math.min(Math.ceil(late), ms);
    if (late > 0 && deadline !== undefined) deadline.at = now + rest;
    timer = setTimeout(then, rest);
    if (unref) unreferenced(timer);
  }, ms);
  if (unref) unreferenced(timer);
  return () => clearTimeout(timer);
}

/** The process does not stay alive for this timer, where the host has that. */
export const unreferenced = (timer: object): void => (timer as { unref?: () => void }).unref?.();
