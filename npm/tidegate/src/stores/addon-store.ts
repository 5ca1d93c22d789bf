import type { AllDecision, Decision, State } from "../limit/decision.ts";
import type { Addon, AddonStats } from "../engine/addon.ts";
import { decisionOf, refuse } from "../engine/answer.ts";
import { VERSION } from "../engine/generated/bounds.ts";
import {
  FAILED,
  INPUT_ERROR,
  KEY_TOO_LONG,
  NUMBERS,
  OPS,
  RESERVE,
  RESET,
  WITHOUT_KEY,
} from "../engine/generated/wire.ts";
import { releasing } from "../engine/release.ts";
import { StoreError } from "../limit/errors.ts";
import type { Limit } from "../limit/limit.ts";
import type { Call, SyncStore } from "./contract.ts";
import { answersTo, joined, settled, staged, told, tooLong } from "./addon-calls.ts";

/** The operations, by the lowest two bits of the flags. */
const OP_NAMES = Object.keys(OPS);

const releaseLimit = releasing<{ addon: Addon; limit: number }>(({ addon, limit }) => addon.limitDrop(limit));

/** State in the native addon. Its calls answer synchronously. */
export abstract class AddonStore implements SyncStore {
  abstract readonly name: string;
  readonly sync = true;
  /** The version of the package that made it. */
  readonly tidegate: string = VERSION;
  readonly #addon: Addon;
  readonly #store: number;
  /** This store's own: another copy of the package, or another store, has its own. */
  readonly #numbers: Float64Array = answersTo(1);
  readonly #handles = new WeakMap<Limit, number>();
  #lastLimit: Limit | undefined;
  #lastHandle = -1;

  /** `open` opens the store with its numbers, and returns its number in the addon. */
  constructor(addon: Addon, open: (numbers: Float64Array) => number) {
    this.#addon = addon;
    this.#store = open(this.#numbers);
  }

  decide(call: Call, now: number = Date.now()): Decision {
    const flags = OPS[call.op] | (call.reserve ? RESERVE : 0);
    return this.decideFast(call.limit, call.key, call.count, flags, now);
  }

  /** {@link decide} without an object for the call; the engine checks the numbers. */
  decideFast(limit: Limit, key: string | undefined, count: number, flags: number, now: number): Decision {
    return decisionOf(this.#call(limit, key, count, flags, now), this.#numbers, limit.policy, Math.floor(now));
  }

  /** One call on one limit and key. Returns its status; its numbers are in `#numbers`. */
  #call(
    limit: Limit,
    key: string | undefined,
    count: number,
    flags: number,
    now: number,
    operation: string = OP_NAMES[flags & 3] as string,
  ): number {
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
      this.#refuse(status, { count, now }, operation, () => limit.identity(key));
    }
    return status;
  }

  decideAll(calls: readonly Call[], now: number = Date.now()): AllDecision {
    const limits = Uint32Array.from(calls, (call) => this.#handle(call.limit));
    const { units, ends, answers, takes, wrong } = staged(calls);
    const [status, retryAt] = this.#addon.all(this.#store, limits, units, ends, answers, now, takes);
    const identity = () => calls.map((call) => call.limit.identity(call.key)).join(",");
    this.#refuse(status, { now, count: wrong }, "limitAll", identity);
    return settled(calls, answers, status, retryAt, Math.floor(now));
  }

  /**
   * One call each on many keys, each by itself, in one crossing (in a folder: in one transaction): for a batch of
   * messages or log lines.
   *
   * Returns one decision per key, in their order.
   */
  decideMany(limit: Limit, keys: readonly string[], count = 1, now: number = Date.now()): Decision[] {
    const answers = answersTo(keys.length);
    const { units, ends } = joined(keys);
    const status = this.#addon.many(this.#handle(limit), units, ends, answers, now, count, OPS.take);
    this.#refuse(status, { count, now }, "limitMany", () => limit.name);
    return told(
      answers,
      keys.map(() => limit),
      Math.floor(now),
    );
  }

  reset(limit: Limit, key: string | undefined): void {
    this.#call(limit, key, 0, RESET, 0, "reset");
  }

  getValue(limit: Limit, key: string | undefined, now: number = Date.now()): State {
    this.#call(limit, key, 0, OPS.check, now, "getValue");
    return { value: this.#numbers[0] as number, ts: this.#numbers[1] as number };
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
      const { kind, given, rate, period, capacity, maxReserved, start, shards } = limit.numbers;
      this.#numbers.set([rate, period, capacity, maxReserved, start, shards]);
      handle = this.#addon.limitNew(this.#store, limit.name, kind, given);
      if (handle < 0) this.#refuse(-handle, limit.numbers, "limit", () => limit.name);
      this.#handles.set(limit, handle);
      releaseLimit(limit, { addon: this.#addon, limit: handle });
    }
    return handle;
  }

  #refuse(status: number, passed: Parameters<typeof refuse>[1], operation: string, identity: () => string): void {
    if (status === FAILED) {
      throw new StoreError(this.#addon.fault(this.#store), { store: this.name, operation, identity: identity() });
    }
    refuse(status, passed);
  }
}
