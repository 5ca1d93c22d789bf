// One decision after another, for long enough, in its own process.
import { load } from "./contenders.mjs";
import { requests } from "./keys.mjs";

/** An hour: nothing refills, and no window starts, during a case. */
export const PERIOD_MS = 3_600_000;
const kept = { answer: undefined };

/**
 * Nanoseconds per decision, including the key and the clock read: of the process's CPU time (its collector's threads
 * too), which other processes do not lengthen, and of the wall clock.
 */
export async function speed({ contender, shape, keys, outcome, warmMs, measureMs }) {
  const capacity = outcome === "allow" ? 1_000_000_000 : 1;
  // A refill so slow that no key is full when it is used again: the measured calls find an existing state.
  const limiter = await load(contender, { capacity, rate: 1, periodMs: PERIOD_MS, maxKeys: keys });
  const next = requests(shape, keys);
  const turn = limiter.promised ? promised : immediate;
  await turn(limiter, next, keys); // every key exists; for the outcome "deny", its one token is spent
  await during(turn, limiter, next, warmMs);
  globalThis.gc();
  const run = await during(turn, limiter, next, measureMs);
  const expected = outcome === "allow" || limiter.decides === false ? run.calls : 0;
  if (run.granted !== expected) {
    throw new Error(
      `${contender}: ${run.granted} of ${run.calls} granted in the ${outcome} case, expected ${expected}`,
    );
  }
  return { cpuNs: run.cpuNs / run.calls, ns: run.ns / run.calls, calls: run.calls };
}

async function during(turn, limiter, next, ms) {
  const batch = 10_000;
  let calls = 0;
  let granted = 0;
  const cpu = process.cpuUsage();
  const begun = process.hrtime.bigint();
  let ns = 0;
  while (ns < ms * 1e6) {
    granted += await turn(limiter, next, batch);
    calls += batch;
    ns = Number(process.hrtime.bigint() - begun);
  }
  const { user, system } = process.cpuUsage(cpu);
  return { ns, cpuNs: (user + system) * 1000, calls, granted };
}

// Stores the result where the engine cannot prove it unused, so that no contender's object is optimized away.
export function immediate(limiter, next, calls) {
  let granted = 0;
  for (let i = 0; i < calls; i++) {
    const answer = limiter.decide(next());
    kept.answer = answer;
    if (answer.ok) granted++;
  }
  return granted;
}

async function promised(limiter, next, calls) {
  let granted = 0;
  for (let i = 0; i < calls; i++) {
    const answer = await limiter.decide(next());
    kept.answer = answer;
    if (answer.ok) granted++;
  }
  return granted;
}
