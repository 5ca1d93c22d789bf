import type { State } from "./decision.ts";
import { type Config, FIRST_REQUEST, numberError, type Start, startNumber } from "./config.ts";
import { checkFields, fieldTable } from "./checks.ts";
import { InputError } from "./errors.ts";
import { type Evaluation, Limit } from "./limit.ts";

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
const LIMITS = 1000;
const limits = new Map<string, Limit>();

const isPlain = (value: unknown): boolean =>
  value === undefined || typeof value === "number" || value === FIRST_REQUEST;

const made = new WeakMap<Config, Limit>();

/** A frozen copy of a config whose limit is cached under this name, without a comparison of its fields. */
export function prepared(name: string, config: Config): Config {
  const frozen = Object.freeze({ ...config });
  made.set(frozen, new Limit(name, frozen));
  return frozen;
}

/** The limit of a config; an equal config gets the cached one. */
export function limitOf(name: string, config: Config): Limit {
  const known = made.get(config);
  if (known !== undefined && known.name === name) return known;
  if (typeof config !== "object" || config === null) return new Limit(name, config);
  // Read once: getters may return something else the next time.
  const read = { ...config } as Config & { start?: Start };
  const { kind, rate, period, capacity, maxReserved, start, shards } = read;
  const numbers = [rate, period, capacity, maxReserved, start, shards];
  const count = 1 + numbers.filter((number) => number !== undefined).length;
  const plain = typeof name === "string" && typeof kind === "string" && numbers.every(isPlain);
  if (!plain || Object.keys(read).length !== count) return new Limit(name, read);
  const id = `${name}|${kind}|${numbers.join("|")}`;
  let limit = limits.get(id);
  if (limit === undefined) {
    limit = new Limit(name, read);
    if (limits.size >= LIMITS) limits.clear();
    limits.set(id, limit);
  }
  return limit;
}

/** Reads a state's two numbers once, or names what is wrong with them. */
export function checkState(state: unknown): State | null {
  if (state === null) return null;
  if (typeof state !== "object") throw new InputError("state", "{ value, ts }, or null for a fresh key", state);
  const { value, ts } = state as State;
  if (typeof value !== "number" || !Number.isFinite(value)) throw numberError("value", value);
  if (typeof ts !== "number" || !Number.isFinite(ts)) throw numberError("ts", ts);
  return { value, ts };
}

/**
 * The algebra itself, for a store or a transaction of one's own: pure.
 *
 * `state` is `{ value, ts }`, or `null` for a fresh key, and is returned as it was passed when nothing is to be written.
 * The limit is one bucket, whatever its `shards`; a fixed window without `start` begins at 0 UTC, since there is
 * no key to derive it from ({@link Limiter.getValue} returns the start it used).
 *
 * ```ts
 * const { decision, state } = evaluate(null, { kind: "token bucket", rate: 10, period: SECOND }, { now: Date.now() });
 * ```
 *
 * Throws an `InputError` that names field, value and rule.
 */
export function evaluate(state: State | null, config: Config, options: EvaluateOptions): Evaluation {
  const limit = limitOf("evaluate", config);
  if (typeof options !== "object" || options === null) throw new InputError("options", "an object with now", options);
  checkFields(options, OPTIONS, "evaluate");
  const { now, count, reserve } = options;
  const read = checkState(state);
  if (typeof now !== "number") throw numberError("now", now);
  if (count !== undefined && typeof count !== "number") throw numberError("count", count);
  if (reserve !== undefined && typeof reserve !== "boolean") throw new InputError("reserve", "true or false", reserve);
  const call = { op: "take", count: count ?? 1, reserve: reserve === true } as const;
  const evaluated = limit.evaluate(read, call, now, { start: startNumber(limit.policy.start ?? 0) });
  return evaluated.state === read ? { ...evaluated, state } : evaluated;
}

/**
 * What `{ value, ts }` is at `now`: pure, the same function that a browser uses between two responses. `null` is a
 * fresh key. Pass the `config` that `getValue` returned: it has the key's `start`.
 */
export function project(state: State | null, config: Config, now: number): State {
  const limit = limitOf("evaluate", config);
  const read = checkState(state);
  if (typeof now !== "number") throw numberError("now", now);
  return limit.project(read, now, startNumber(limit.policy.start ?? 0));
}
