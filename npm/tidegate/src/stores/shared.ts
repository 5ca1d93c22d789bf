/**
 * One table for all threads of a Node.js process.
 *
 * @module
 */
import type { AllDecision, Decision, State } from "../decision.ts";
import { type Addon, type AddonSource, here, lent, loadAddon, packageOf } from "../engine/addon.ts";
import { decisionOf, refusal, refuse } from "../engine/answer.ts";
import { INPUT_ERROR, OPS, RESERVE } from "../engine/generated/wire.ts";
import { InputError } from "../errors.ts";
import type { Limit } from "../limit.ts";
import type { Call, SyncStore } from "../store.ts";
import { joined, KEY_TOO_LONG, NO_KEY, settled, staged, told, tooLong, unitsOf } from "./addon-calls.ts";
import { checkMaxKeys, type MemoryStats, MemoryStore } from "./memory.ts";

/** State in the process's memory, in the addon: every worker thread that calls `shared()` has the same. */
export class SharedStore implements SyncStore {
  readonly name = "shared";
  readonly sync = true;
  readonly cannotFail = true;
  readonly #addon: Addon;
  readonly #numbers: Float64Array;
  readonly #handles = new WeakMap<Limit, number>();
  #lastLimit: Limit | undefined;
  #lastHandle = -1;

  constructor(addon: Addon, numbers: Float64Array) {
    this.#addon = addon;
    this.#numbers = numbers;
  }

  decide(call: Call, now: number = Date.now()): Decision {
    const flags = OPS[call.op] | (call.reserve ? RESERVE : 0);
    return this.decideFast(call.limit, call.key, call.count, flags, now);
  }

  /** {@link decide} without an object for the call: numbers are the engine's to check. */
  decideFast(limit: Limit, key: string | undefined, count: number, flags: number, now: number): Decision {
    if (limit !== this.#lastLimit) {
      this.#lastHandle = this.#handle(limit);
      this.#lastLimit = limit;
    }
    const numbers = this.#numbers;
    numbers[0] = now;
    numbers[1] = count;
    if (limit.policy.shards > 1) numbers[2] = Math.random();
    const status = this.#addon.decide(this.#lastHandle, key === undefined ? flags | NO_KEY : flags, key);
    if (status >= INPUT_ERROR) {
      throw status === KEY_TOO_LONG ? tooLong(key) : refusal(status, { count, now });
    }
    return decisionOf(status, numbers, limit.policy, Math.floor(now));
  }

  decideAll(calls: readonly Call[], now: number = Date.now()): AllDecision {
    const limits = Uint32Array.from(calls, (call) => this.#handle(call.limit));
    const { units, ends, answers, takes, wrong } = staged(calls);
    const [status, retryAt] = this.#addon.all(limits, units, ends, answers, now, takes);
    refuse(status, { now, count: wrong });
    return settled(calls, answers, status, retryAt, Math.floor(now));
  }

  /**
   * One call each on many keys, each by itself, in one crossing: what a batch of messages or log lines needs.
   *
   * Returns one decision per key, in their order.
   */
  decideMany(limit: Limit, keys: readonly string[], count = 1, now: number = Date.now()): Decision[] {
    const answers = new Float64Array(new ArrayBuffer(keys.length * 64));
    if (limit.policy.shards > 1) for (let i = 0; i < keys.length; i++) answers[i * 8] = Math.random();
    const { units, ends } = joined(keys);
    refuse(this.#addon.many(this.#handle(limit), units, ends, answers, now, count, OPS.take), { count, now });
    return told(
      answers,
      keys.map(() => limit),
      Math.floor(now),
    );
  }

  reset(limit: Limit, key: string | undefined): void {
    refuse(this.#addon.reset(this.#handle(limit), unitsOf(key)), {});
  }

  getValue(limit: Limit, key: string | undefined, now: number = Date.now()): State {
    refuse(this.#addon.value(this.#handle(limit), unitsOf(key), now), { now });
    return { value: this.#numbers[0] as number, ts: this.#numbers[1] as number };
  }

  /** What the process's table holds and has dropped, so far. */
  stats(): MemoryStats {
    const [keys = 0, maxKeys = 0, evicted = 0, expired = 0, bytes = 0] = this.#addon.stats();
    return { keys, maxKeys, evicted, expired, bytes };
  }

  #handle(limit: Limit): number {
    let handle = this.#handles.get(limit);
    if (handle === undefined) {
      const { numbers } = limit;
      const { kind, given, rate, period, capacity, maxReserved, start, shards } = numbers;
      this.#numbers.set([rate, period, capacity, maxReserved, start, shards]);
      handle = this.#addon.limitNew(limit.name, kind, given);
      if (handle < 0) throw refusal(-handle, numbers);
      this.#handles.set(limit, handle);
    }
    return handle;
  }
}

/** Settings of {@link shared}. */
export interface SharedOptions {
  /** Most states held: a whole number, 1 to 16,777,216; default 1,000,000. The first call in the process decides. */
  maxKeys?: number | undefined;
}

let opened: SharedStore | MemoryStore | undefined;

/**
 * The store that all worker threads of this process share, in the native addon. Exact across threads, synchronous; a
 * store of one process, so use a server's store for several.
 *
 * ```ts
 * // in every worker
 * const limits = defineLimits({ api: { kind: "token bucket", rate: 100, period: SECOND } }, { store: shared() });
 * ```
 *
 * Where the addon is missing, broken or of another version, it is this thread's own memory instead: a warning with every
 * cause is emitted, once in each thread, and the store's `name` is `"memory"`.
 *
 * Throws an `InputError` where `maxKeys` is out of range, or not what the process's table was made with.
 */
export function shared(options: SharedOptions = {}, source: AddonSource = here()): SharedStore | MemoryStore {
  const maxKeys = checkMaxKeys(options.maxKeys);
  if (opened === undefined) {
    const found = loadAddon(source);
    if ("addon" in found) {
      found.addon.open(lent, maxKeys);
      opened = new SharedStore(found.addon, lent);
    } else {
      const causes = found.causes.map(({ message }) => message).join("; caused by: ");
      process.emitWarning(`tidegate's addon is not there, so shared() is this thread's own memory: ${causes}`, {
        code: "TIDEGATE_ADDON",
        detail: `It is the package ${packageOf(source)}; install it, or use a store that a server shares.`,
      });
      opened = new MemoryStore({ maxKeys });
    }
  }
  const has = opened.stats().maxKeys;
  if (options.maxKeys !== undefined && options.maxKeys !== has) {
    throw new InputError("maxKeys", `${has}, as the process's table was made with`, options.maxKeys);
  }
  return opened;
}
