// Before any measurement: the contender loads, and its decisions are correct.
import { load } from "./contenders.mjs";
import { PERIOD_MS } from "./speed.mjs";

/** Grants exactly `capacity`, counting down, then denies; another key is unaffected. */
export async function probe({ contender }) {
  const capacity = 5;
  const limiter = await load(contender, { capacity, periodMs: PERIOD_MS, maxKeys: 1000 });
  const about = { kind: limiter.kind, version: limiter.version };
  if (limiter.decides === false) return about;
  const wrong = (what, answer) => new Error(`${contender} ${what}: ${JSON.stringify(answer)}`);
  for (const key of ["a", "b"]) {
    for (let taken = 1; taken <= capacity + 3; taken++) {
      const before = Date.now();
      const answer = await limiter.decide(key);
      if (answer.ok !== taken <= capacity) throw wrong(`answered request ${taken} of ${capacity} wrongly`, answer);
      if (answer.remaining !== Math.max(capacity - taken, 0)) throw wrong(`counts wrongly at request ${taken}`, answer);
      if (!(answer.resetAt > before && answer.resetAt <= Date.now() + PERIOD_MS + 1)) {
        throw wrong("has no time at which the limit is full again", answer);
      }
    }
  }
  return about;
}
