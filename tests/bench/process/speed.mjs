// One decision after another, for long enough; in a process of its own.
import { load } from "./contenders.mjs";
import { requests } from "./keys.mjs";

/** An hour: nothing comes back, and no window turns, while a case is measured. */
export const PERIOD_MS = 3_600_000;
const kept = { answer: undefined };

/**
 * Nanoseconds a decision, the key's making and the clock read included: of the process's CPU (its collector's threads
 * too), which a busy neighbour does not lengthen, and of the wall clock.
 */
export async function speed({ contender, shape, keys, outcome, warmMs, measureMs }) {
  const capacity = outcome === "allow" ? 1_000_000_000 : 1;
  // So slow a refill that no key is full again when it comes round: a state that is there is what is measured.
  const limiter = await load(contender, { capacity, rate: 1, periodMs: PERIOD_MS, maxKeys: keys });
  const next = requests(shape, keys);
  const turn = limiter.promised ? promised : immediate;
  await turn(limiter, next, keys); // every key is there; where the outcome is to be "deny", its one token is gone
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

// The answer is stored where the engine cannot prove it unused, so no contender's object is optimised away.
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
