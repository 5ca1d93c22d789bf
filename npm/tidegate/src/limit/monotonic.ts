/**
 * The monotonic clock, ms from any origin: corrections of the host's time do not move it. Deadlines and durations use it.
 * QuickJS and plain Hermes lack `performance`: there it is `Date.now`, and a corrected clock shortens or prolongs one wait.
 */
export const monotonicNow: () => number = typeof performance === "undefined" ? Date.now : () => performance.now();

/** Ms by which a timer of an idle process may be late. */
const JITTER = 5;
/** Ms by which a timer may be early and still count as in time, because the rates of two clocks differ a little. */
const EARLY = 0.1;
/**
 * No host's timer is early by this many ms: one that is belongs to a test's fake timers, which do not move this clock.
 */
const FAKE = 2;

/**
 * Resolves when the timers that were due at `at` have run. If this process did not run then, it may read a reply first,
 * and the timers move the deadline. `undefined` if nothing is overdue.
 */
export function overdueTimers(at: number): Promise<void> | undefined {
  if (monotonicNow() - at < JITTER) return undefined;
  return new Promise((resolve) => void setTimeout(resolve, 1));
}

/**
 * Calls `then` after `ms`; the returned function cancels it. A timer that fires late does so before the replies that arrived
 * meanwhile are read: the process was busy, and no peer was slow. It then waits again for as long as it was late, at most `ms`.
 * A timer that fires early, as those of Node.js do by less than 1 ms, waits for the rest. `unref`: the timer does not keep the
 * process alive. If the wait is prolonged, `deadline` is moved to its new end, by this clock.
 */
export function afterWaiting(ms: number, then: () => void, unref = false, deadline?: { at: number }): () => void {
  const due = monotonicNow() + ms;
  let timer = setTimeout(() => {
    const now = monotonicNow();
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

/**
 * Settles as `awaited` does. After `ms` it settles as `late`: a client may never answer what it sent to a dead server. The
 * timer does not keep the process alive. `deadline`: as of {@link afterWaiting}.
 */
export function within<T>(ms: number, awaited: PromiseLike<T>, late: () => T, deadline?: { at: number }): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = afterWaiting(Math.max(ms, 0), () => resolve(Promise.resolve().then(late)), true, deadline);
    void awaited.then(resolve, reject).then(cancel);
  });
}

/** The timer does not keep the process alive, if the host supports that. */
export const unreferenced = (timer: object): void => (timer as { unref?: () => void }).unref?.();
