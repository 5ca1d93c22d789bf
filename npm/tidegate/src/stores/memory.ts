/** The store in memory: its table is in the engine, so that each call is one call of that. */
import { type Check, checkTable, integerFrom } from "../limit/checks.ts";
import { isBytes } from "../limit/realms.ts";
import type { AllDecision, Decision, State } from "../limit/decision.ts";
import { allOf, decisionOf, decisionsOf, refusal, refuse } from "../engine/answer.ts";
import { doublesAt } from "../engine/algebra.ts";
import { type Engine, engine } from "../engine/engine.ts";
import { VERSION } from "../engine/generated/bounds.ts";
import { INPUT_ERROR, NUMBERS, OPS, SAME_KEY } from "../engine/generated/wire.ts";
import { type Handle, releasedWith } from "../engine/release.ts";
import { InputError } from "../limit/errors.ts";
import { flagsOf } from "../limit/evaluator.ts";
import { type Limit, register } from "../limit/limit.ts";
import type { Call, SyncStore } from "./contract.ts";

/** Settings of {@link memory}. */
export interface MemoryOptions {
  /**
   * Most states held: an integer, 1 to 16,777,216; default 1,000,000, for which the process grows by about 81 MB. When there
   * is no room, the fullest state of a sample is evicted. `stats().evicted` counts those that were not full: each grants its
   * key at most one `capacity` more.
   */
  maxKeys?: number | undefined;
  /** The bytes that {@link MemoryStore.dump} returned: the states to start with. */
  restore?: Uint8Array | undefined;
}

/** What a memory store holds and has dropped. */
export interface MemoryStats {
  /** States held now. */
  keys: number;
  /** Most states held; beyond it, the fullest of a sample is evicted. */
  maxKeys: number;
  /** States that were evicted before they were full. */
  evicted: number;
  /** Full states that were removed, which changes no answer. */
  expired: number;
  /** Bytes of the table. */
  bytes: number;
}

export const MAX_KEYS: Check = integerFrom("an integer from 1 to 16777216", 1, 16_777_216);
const OPTIONS = { maxKeys: MAX_KEYS, restore: { expects: "the bytes of a dump", accepts: isBytes } };
/** One key in this many is remembered, in case the next call has the same. */
const KEPT_ONE_IN = 16;

/** State in this thread's memory, inside the engine. Its calls return synchronously. */
export class MemoryStore implements SyncStore {
  readonly name = "memory";
  readonly sync = true;
  /** The version of the package that made it. */
  readonly tidegate: string = VERSION;
  /** Its only errors are mistakes in calls. */
  readonly cannotFail = true;
  readonly #engine: Engine = engine();
  readonly #maxKeys: number;
  #restore: Uint8Array | undefined;
  /** Made at the first call: hosts give no random numbers before there is a request. */
  #table = -1;
  readonly #handles = new WeakMap<Limit, Handle>();
  #lastLimit: Limit | undefined;
  #lastHandle = -1;
  #lastKey: string | undefined;
  #lastWrites = -1;
  #untilKept = 0;

  constructor(options: MemoryOptions = {}) {
    checkTable("memory", options, OPTIONS);
    const { restore: bytes, maxKeys = 1_000_000 } = options;
    this.#maxKeys = maxKeys;
    this.#restore = bytes?.slice();
    if (bytes !== undefined) this.#open();
  }

  decide(call: Call, now: number = Date.now()): Decision {
    return this.decideFast(call.limit, call.key, call.count, flagsOf(call), now);
  }

  /** {@link decide} without an object for the call: numbers are the engine's to check. */
  decideFast(limit: Limit, key: string | undefined, count: number, flags: number, now: number): Decision {
    const engine = this.#engine;
    let length: number;
    if (limit !== this.#lastLimit) {
      this.#lastHandle = this.#handle(limit);
      this.#lastLimit = limit;
      this.#lastKey = undefined;
      length = engine.writeKey(key);
    } else if (engine.writes === this.#lastWrites && key === this.#lastKey && key !== undefined) {
      length = SAME_KEY;
    } else {
      length = engine.writeKey(key);
      // A hot key is remembered soon enough; remembering each key would cost more than it saves.
      if (--this.#untilKept < 0) {
        this.#untilKept = KEPT_ONE_IN - 1;
        this.#lastKey = key;
        this.#lastWrites = engine.writes;
      }
    }
    const status = engine.wasm.decide(this.#table, this.#lastHandle, length, now, count, flags);
    if (status >= INPUT_ERROR) {
      this.#lastKey = undefined; // the engine may not have looked at it
      throw refusal(status, { count, for: count, now });
    }
    return decisionOf(status, engine.numbers, limit.policy, Math.floor(now));
  }

  decideAll(calls: readonly Call[], now: number = Date.now()): AllDecision {
    const { wasm } = this.#engine;
    wasm.all_clear();
    for (const { limit, key, count, reserve } of calls) {
      const handle = this.#handle(limit);
      const length = this.#engine.writeKey(key);
      refuse(wasm.all_stage(handle, length, count, reserve ? 1 : 0), { count });
    }
    const status = wasm.all_commit(this.#table, now, calls.every(({ op }) => op === "take") ? 1 : 0);
    refuse(status, { now });
    const at = Math.floor(now);
    const { 0: retryAt, 1: answersAt } = this.#engine.numbers;
    const answers = doublesAt(wasm, answersAt, calls.length * NUMBERS);
    const policies = calls.map(({ limit }) => limit.policy);
    return allOf(status, retryAt, decisionsOf(answers, policies, at), at);
  }

  reset(limit: Limit, key: string | undefined): void {
    const handle = this.#handle(limit);
    this.#engine.wasm.reset(this.#table, handle, this.#engine.writeKey(key));
  }

  getValue(limit: Limit, key: string | undefined, now: number = Date.now()): State {
    const { value, ts } = this.decideFast(limit, key, 0, OPS.check, now);
    return { value, ts };
  }

  /** What it holds and has dropped, so far. */
  stats(): MemoryStats {
    this.#open();
    this.#engine.wasm.stats(this.#table);
    const { 0: keys, 1: maxKeys, 2: evicted, 3: expired, 4: bytes } = this.#engine.numbers;
    return { keys, maxKeys, evicted, expired, bytes };
  }

  /**
   * Every state, as bytes that `memory({ restore })` takes, to outlive the process. Keys are not in it, only their
   * keyed hashes; the secret of the hash is, so keep it as private as the process.
   */
  dump(): Uint8Array {
    this.#open();
    const { wasm } = this.#engine;
    if (wasm.dump(this.#table) > 0) throw new Error("no memory for a dump");
    const { 0: at, 1: length } = this.#engine.numbers;
    const bytes = this.#engine.bytes(at, length).slice();
    wasm.room(0);
    return bytes;
  }

  #open(): void {
    if (this.#table >= 0) return;
    const { wasm } = this.#engine;
    if (this.#restore === undefined) {
      // Hashes depend on a secret, so that no client can provoke collisions. Hosts without a random source (React Native,
      // QuickJS) limit their own user, and have no such clients.
      const secret = new Uint8Array(16);
      globalThis.crypto?.getRandomValues(secret);
      this.#engine.writeBytes(secret);
      this.#table = wasm.table_new(this.#maxKeys);
    } else {
      const { length } = this.#restore;
      const at = wasm.room(length);
      this.#engine.bytes(at, length).set(this.#restore);
      this.#table = wasm.restore(this.#maxKeys);
      if (this.#table < 0) throw new InputError("restore", "all bytes of a dump", this.#restore);
      this.#restore = undefined;
    }
    releasedWith(this, wasm.table_drop, this.#table);
  }

  #handle(limit: Limit): number {
    let handle = this.#handles.get(limit);
    if (handle === undefined) {
      this.#open();
      handle = { at: register(limit, this.#table, this.#engine) };
      this.#handles.set(limit, handle);
      releasedWith(handle, this.#engine.wasm.limit_drop, handle.at);
    }
    return handle.at;
  }
}

/**
 * A store in this thread's memory: the default. Exact, synchronous, one thread; use the addon's `shared()` to share one
 * between worker threads, and a server's store to share one between processes.
 *
 * ```ts
 * const limits = defineLimits({ login: { kind: "token bucket", rate: 5, period: MINUTE } }, { store: memory({ maxKeys: 50_000 }) });
 * ```
 *
 * Throws an `InputError` if an option is wrong.
 */
export function memory(options: MemoryOptions = {}): MemoryStore {
  return new MemoryStore(options);
}
