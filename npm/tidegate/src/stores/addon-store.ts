/** The base of the stores in the native addon: shared.ts, between threads, and file.ts, in a folder. */
import type { AllDecision, Decision, State } from "../limit/decision.ts";
import type { Addon, AddonStats } from "../engine/addon.ts";
import { allOf, decisionOf, decisionsOf, type Numbers, refuse } from "../engine/answer.ts";
import { KEY_EXPECTS, MAX_KEY_BYTES, VERSION } from "../engine/generated/bounds.ts";
import {
  FAILED,
  INPUT_ERROR,
  KEY_TOO_LONG,
  KINDS,
  NO_KEY,
  NUMBERS,
  OPS,
  RESET,
  WITHOUT_KEY,
} from "../engine/generated/wire.ts";
import { type Handle, releasedWith } from "../engine/release.ts";
import { writePolicy } from "../limit/config.ts";
import { InputError, StoreError } from "../limit/errors.ts";
import { flagsOf, opOf } from "../limit/evaluator.ts";
import type { Limit } from "../limit/limit.ts";
import type { Call, SyncStore } from "./contract.ts";
import { idsOf } from "./failure.ts";

const tooLong = (key: string | undefined): InputError =>
  new InputError("key", KEY_EXPECTS, key, `${new TextEncoder().encode(key).length} bytes`);

/** Room for the answers to this many calls. */
const answersTo = (calls: number): Float64Array =>
  new Float64Array(new ArrayBuffer(calls * NUMBERS * Float64Array.BYTES_PER_ELEMENT));

/** The keys' characters one after another, and where each ends. */
function joined(keys: readonly (string | undefined)[]): { units: Uint16Array; ends: Uint32Array } {
  const ends = new Uint32Array(keys.length);
  let length = 0;
  for (const [i, key] of keys.entries()) {
    if (key !== undefined && key.length > MAX_KEY_BYTES) throw tooLong(key);
    length += key?.length ?? 0;
    ends[i] = key === undefined ? NO_KEY : length;
  }
  const units = new Uint16Array(length);
  let at = 0;
  for (const key of keys) {
    if (key !== undefined) for (let i = 0; i < key.length; i++) units[at++] = key.charCodeAt(i);
  }
  return { units, ends };
}

/** State in the native addon. Its calls return synchronously. */
export abstract class AddonStore implements SyncStore {
  abstract readonly name: string;
  readonly sync = true;
  /** The version of the package that made it. */
  readonly tidegate: string = VERSION;
  readonly #addon: Addon;
  readonly #store: number;
  /** This store's own: another copy of the package, or another store, has its own. */
  readonly #numbers: Numbers;
  readonly #handles = new WeakMap<Limit, Handle>();
  #lastLimit: Limit | undefined;
  #lastHandle = -1;

  /** `numbers`: of the store that the addon has opened. */
  constructor(addon: Addon, numbers: Numbers) {
    this.#addon = addon;
    this.#numbers = numbers;
    this.#store = numbers[0];
  }

  decide(call: Call, now: number = Date.now()): Decision {
    return this.decideFast(call.limit, call.key, call.count, flagsOf(call), now);
  }

  /** {@link decide} without an object for the call; the engine checks the numbers. */
  decideFast(limit: Limit, key: string | undefined, count: number, flags: number, now: number): Decision {
    return decisionOf(this.#call(limit, key, count, flags, now), this.#numbers, limit.policy, Math.floor(now));
  }

  /** One call on one limit and key. Returns its status; its numbers are in `#numbers`. */
  #call(limit: Limit, key: string | undefined, count: number, flags: number, now: number, operation?: string): number {
    if (limit !== this.#lastLimit) {
      this.#lastHandle = this.#handle(limit);
      this.#lastLimit = limit;
    }
    const numbers = this.#numbers;
    numbers[0] = now;
    numbers[1] = count;
    const status = this.#addon.decide(this.#lastHandle, key === undefined ? flags | WITHOUT_KEY : flags, key);
    if (status >= INPUT_ERROR) {
      if (status === KEY_TOO_LONG) throw tooLong(key);
      this.#refuse(status, { count, for: count, now }, operation ?? opOf(flags), () => limit.identity(key));
    }
    return status;
  }

  decideAll(calls: readonly Call[], now: number = Date.now()): AllDecision {
    const limits = Uint32Array.from(calls, (call) => this.#handle(call.limit));
    const { units, ends } = joined(calls.map((call) => call.key));
    const answers = answersTo(calls.length);
    for (const [i, { count, reserve }] of calls.entries()) answers.set([count, reserve ? 1 : 0], i * NUMBERS);
    const takes = calls.every((call) => call.op === "take");
    const [status, retryAt] = this.#addon.all(this.#store, limits, units, ends, answers, now, takes);
    const count = (calls.find((call) => !(call.count >= 0)) ?? calls[0])?.count;
    this.#refuse(status, { now, count }, "limitAll", () => idsOf(calls).join(","));
    const [policies, at] = [calls.map(({ limit }) => limit.policy), Math.floor(now)];
    return allOf(status, retryAt, decisionsOf(answers, policies, at), at);
  }

  /**
   * Takes from each of many keys by itself, in one call of the addon (in a folder: one transaction). Returns one
   * decision per key, in their order.
   */
  decideMany(limit: Limit, keys: readonly string[], count = 1, now: number = Date.now()): Decision[] {
    const answers = answersTo(keys.length);
    const { units, ends } = joined(keys);
    const status = this.#addon.many(this.#handle(limit), units, ends, answers, now, count);
    this.#refuse(status, { count, now }, "limitMany", () => limit.name);
    const policies = keys.map(() => limit.policy);
    return decisionsOf(answers, policies, Math.floor(now));
  }

  reset(limit: Limit, key: string | undefined): void {
    this.#call(limit, key, 0, RESET, 0, "reset");
  }

  getValue(limit: Limit, key: string | undefined, now: number = Date.now()): State {
    this.#call(limit, key, 0, OPS.check, now, "getValue");
    return { value: this.#numbers[0], ts: this.#numbers[1] };
  }

  protected held(): AddonStats {
    return this.#addon.stats(this.#store);
  }

  protected closed(): void {
    this.#addon.close(this.#store);
  }

  #handle(limit: Limit): number {
    let handle = this.#handles.get(limit);
    if (handle === undefined) {
      writePolicy(this.#numbers, limit.policy);
      const at = this.#addon.limitNew(this.#store, limit.name, KINDS.indexOf(limit.policy.kind));
      if (at < 0) this.#refuse(-at, limit.policy, "limit", () => limit.name);
      handle = { at };
      this.#handles.set(limit, handle);
      releasedWith(handle, this.#addon.limitDrop, at);
    }
    return handle.at;
  }

  #refuse(status: number, passed: Parameters<typeof refuse>[1], operation: string, identity: () => string): void {
    if (status === FAILED) {
      throw new StoreError(this.#addon.fault(this.#store), { store: this.name, operation, identity: identity() });
    }
    refuse(status, passed);
  }
}
