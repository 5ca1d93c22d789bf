/** The public functions of the algebra, `evaluate` and `project`, with the checks of their arguments. */
import { algebra } from "../engine/algebra.ts";
import { checkFlag, checkOptions, fieldTable } from "./checks.ts";
import { cached } from "./cached.ts";
import { type Config, numberError, startNumber } from "./config.ts";
import type { State } from "./decision.ts";
import { checkState, type Evaluation, Evaluator } from "./evaluator.ts";

/** The call that {@link evaluate} decides. */
export interface EvaluateOptions {
  /** The clock: ms since the Unix epoch, 0 to 2^52; a fraction is floored. */
  now: number;
  /** Tokens to take: 0 to 2^40; default 1. */
  count?: number | undefined;
  /** Whether tokens may be owed, up to the config's `maxReserved`. */
  reserve?: boolean | undefined;
}

const OPTIONS = fieldTable("now", "count", "reserve");
const evaluatorOf = /* @__PURE__ */ cached((name, config) => new Evaluator(name, config, algebra()));

const read = (state: State | null): State | null =>
  state === null ? null : checkState(state, "{ value, ts }, or null for a fresh key");

/**
 * The algebra itself, as a pure function: for your own store or transaction.
 *
 * `state` is `{ value, ts }`, or `null` for a fresh key. If nothing is to be written, the same `state` is returned. The limit
 * is one bucket, whatever its `shards`. A fixed window without `start` begins at 0 UTC, as there is no key to derive it from;
 * {@link Limiter.getValue} returns the start that it used.
 *
 * ```ts
 * const { decision, state } = evaluate(null, { kind: "token bucket", rate: 10, period: SECOND }, { now: Date.now() });
 * ```
 *
 * Throws an `InputError` that names field, value and rule.
 */
export function evaluate(state: State | null, config: Config, options: EvaluateOptions): Evaluation {
  const limit = evaluatorOf("evaluate", config);
  checkOptions("evaluate", options, OPTIONS, "an object with now");
  const { now, count, reserve } = options;
  const before = read(state);
  if (typeof now !== "number") throw numberError("now", now);
  if (count !== undefined && typeof count !== "number") throw numberError("count", count);
  checkFlag("reserve", reserve);
  const call = { op: "take", count: count ?? 1, reserve: reserve === true } as const;
  const evaluated = limit.evaluate(before, call, now, { start: startNumber(limit.policy.start ?? 0) });
  return evaluated.state === before ? { ...evaluated, state } : evaluated;
}

/**
 * What `{ value, ts }` is at `now`: a pure function, such as for a display in a page. `null` is a fresh key. Pass the `config`
 * that `getValue` returned: it has the key's `start`.
 *
 * Throws an `InputError` that names field, value and rule.
 */
export function project(state: State | null, config: Config, now: number): State {
  const limit = evaluatorOf("evaluate", config);
  const before = read(state);
  if (typeof now !== "number") throw numberError("now", now);
  return limit.project(before, now, startNumber(limit.policy.start ?? 0));
}
