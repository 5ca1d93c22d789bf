/** Histories with their results, which every store must repeat to the bit. */
import { keyed } from "../limiter/options.ts";
import type { Config } from "../limit/config.ts";
import type { State } from "../limit/decision.ts";
import { defineLimits } from "../limiter/limiter.ts";
import { Limit } from "../limit/limit.ts";
import type { Store } from "../stores/contract.ts";
import { fakeClock } from "./clock.ts";
import { shown } from "./expectation.ts";

/** One request of a `takeAll` step. */
export interface VectorRequest {
  limit: string;
  key?: string;
  config: Config;
  count?: number;
  reserve?: boolean;
}

/** One call of a vector, its result, and what is stored afterwards. */
export interface VectorStep {
  op: "take" | "check" | "give" | "charge" | "block" | "reset" | "project" | "takeAll";
  now: number;
  count?: number;
  /** Length of a `block`, ms. */
  for?: number;
  reserve?: boolean;
  /** The limit's config from this step on. */
  config?: Config;
  requests?: readonly VectorRequest[];
  /** `null` for a reset. */
  expect: Readonly<Record<string, unknown>> | null;
  state?: State | null;
  /** Of a `takeAll`: one for each request. */
  states?: readonly (State | null)[];
}

/** A history of one limit and key, or of several limits. */
export interface Vector {
  name: string;
  /** Absent if each request names its own. */
  limit?: string;
  key?: string;
  config?: Config;
  /** Absent if the vector is about bad input, which never reaches a store. */
  steps?: readonly VectorStep[];
}

/** The parsed JSON of a file of vectors. */
export interface VectorFile {
  /** What they are about. */
  about?: string;
  vectors: readonly Vector[];
}

/** Returns what is stored under `limit.identity(key)`; `null` for nothing. */
export type Stored = (id: string) => State | null | Promise<State | null>;

export function isSharded(vector: Vector): boolean {
  const configs = (vector.steps ?? []).flatMap(({ config, requests = [] }) => [
    config,
    ...requests.map((r) => r.config),
  ]);
  return [vector.config, ...configs].some((config) => (config?.shards ?? 1) > 1);
}

/** Runs one vector through a store, as calls on limits; returns a sentence for each difference. */
export async function runVector(store: Store, vector: Vector, stored?: Stored): Promise<string[]> {
  const clock = fakeClock(0);
  const limits = defineLimits<never, Store>({}, { store, now: clock.now, timeout: 60_000 });
  const wrong: string[] = [];
  const used = new Map<string, { name: string; key: string | undefined; config: Config }>();
  let config = vector.config;
  for (const [index, step] of (vector.steps ?? []).entries()) {
    const about = `${vector.name}, step ${index} (${step.op})`;
    config = step.config ?? config;
    // A limiter rejects an empty list before it calls a store.
    if (step.requests?.length === 0) continue;
    const requests = step.requests ?? [{ ...step, limit: vector.limit, key: vector.key, config } as VectorRequest];
    for (const request of requests) {
      const { limit: name, key } = request;
      used.set(shown([name, key, request.config.shards]), { name, key, config: request.config });
    }
    clock.set(step.now);
    const got = await call(limits, step, requests);
    if (got?.["degraded"] === true) throw got["cause"];
    wrong.push(...differences(got, step.expect, about));
    const states = step.states ?? [step.state ?? null];
    wrong.push(...(await differentStates(limits, clock, step, requests, states, stored, about)));
  }
  for (const { name, key, config } of used.values()) await limits.reset(name, { ...keyed(key), config });
  return wrong;
}

type Limits = ReturnType<typeof defineLimits<never, Store>>;
type Result = Readonly<Record<string, unknown>> | null;

async function call(limits: Limits, step: VectorStep, requests: readonly VectorRequest[]): Promise<Result> {
  const one = requests[0] as VectorRequest;
  const { count, reserve } = one;
  const options = { ...keyed(one.key), config: one.config };
  switch (step.op) {
    case "takeAll": {
      const named = requests.map(({ limit, key, ...rest }) => ({ name: limit as never, ...keyed(key), ...rest }));
      return { ...(await limits.limitAll(named)) };
    }
    case "reset":
      await limits.reset(one.limit, options);
      return null;
    case "project": {
      const { value, ts } = await limits.getValue(one.limit, options);
      return { value, ts };
    }
    case "block":
      return { ...(await limits.block(one.limit, { ...options, for: step.for as number })) };
    case "give":
    case "charge":
      return { ...(await limits[step.op](one.limit, { ...options, count })) };
    default: {
      const op = step.op === "take" ? "limit" : "check";
      return { ...(await limits[op](one.limit, { ...options, count, reserve })) };
    }
  }
}

/** Fields that must be absent if they are not expected. Others that are not expected, such as `policy`, may be present. */
const OPTIONAL = ["retryAt", "retryAfter", "reason"];

function differences(got: Result, expected: Result, about: string): string[] {
  if (expected === null || got === null) return shown(got) === shown(expected) ? [] : [`${about}: ${shown(got)}`];
  const { decisions = [], ...whole } = expected as Record<string, unknown> & { decisions?: readonly Result[] };
  const wrong: string[] = [];
  for (const field of new Set([...Object.keys(whole), ...OPTIONAL])) {
    const [is, should] = [shown(got[field]), shown(whole[field])];
    if (is !== should) wrong.push(`${about}: ${field} should be ${should}, not ${is}`);
  }
  const results = (got["decisions"] ?? []) as readonly Result[];
  const inner = decisions.flatMap((decision, i) => differences(results[i] ?? null, decision, `${about}, request ${i}`));
  return [...wrong, ...inner];
}

/**
 * Compares `getValue` at the step's time, and what is stored: directly if the caller can read it. Elsewhere, if the
 * state is not full, by `getValue` at the state's own time, when no token has been added to it.
 */
async function differentStates(
  limits: Limits,
  clock: { set(ms: number): void },
  step: VectorStep,
  requests: readonly VectorRequest[],
  states: readonly (State | null)[],
  stored: Stored | undefined,
  about: string,
): Promise<string[]> {
  const wrong: string[] = [];
  const compare = (got: State | null, expected: State | null, what: string): void => {
    const two = (state: State | null) => shown(state === null ? null : [state.value, state.ts]);
    if (two(got) !== two(expected)) wrong.push(`${about}: ${what} should be ${two(expected)}, not ${two(got)}`);
  };
  for (const [i, { limit: name, key, config }] of requests.entries()) {
    const limit = new Limit(name, config);
    const start = limit.start(key);
    const state = states[i] ?? null;
    const compareAt = async (at: number): Promise<void> => {
      clock.set(at);
      const options = { ...keyed(key), config };
      const expected = limit.project(state, at, start);
      compare(await limits.getValue(name, options), expected, `getValue of ${shown(limit.identity(key))} at ${at}`);
    };
    await compareAt(step.now);
    if (stored !== undefined) {
      const id = limit.identity(key);
      compare(await stored(id), state, `what is stored under ${shown(id)}`);
    } else if (state && limit.fullAt(state, step.now, { start }) > step.now && state.ts <= 2 ** 52) {
      await compareAt(Math.max(state.ts, 0));
    }
  }
  clock.set(step.now);
  return wrong;
}
