// A limit to experiment with: its policy may change at any time, and each call has its own clock and random number.
// The page runs this file too, on its own WebAssembly. The same calls must leave the same numbers on both sides.
import { defineLimits, InputError } from "tidegate";
import { transactional } from "tidegate/store";

/**
 * @typedef {import("tidegate").Config} Config
 * @typedef {import("tidegate").Decision} Decision
 * @typedef {import("tidegate").State} State
 * @typedef {"limit" | "check" | "give" | "charge"} Op
 * @typedef {{ op: Op, count: number, reserve: boolean, now: number, random: number }} SandboxCall
 * `now` is epoch ms; `random`, from 0 up to 1, picks the two shards that are compared.
 */

/** The most shards: each is a state to keep for every visitor. */
export const MOST_SHARDS = 16;
/** @type {readonly unknown[]} */
const OPS = ["limit", "check", "give", "charge"];
const NAME = "sandbox";

export class Sandbox {
  /** @type {Map<string, State>} */
  #states = new Map();
  /** The clock and the random number of the current call. */
  #now = 0;
  #random = 0;
  /** @type {Promise<unknown>} */
  #last = Promise.resolve();
  /** @type {import("tidegate").Limiter<"sandbox", import("tidegate").AsyncStore>} */
  #limits;
  /** @type {Config} */
  config;

  /** @param {Config} config Throws an `InputError` if it is invalid. */
  constructor(config) {
    this.#limits = this.#defined(config);
    this.config = config;
  }

  /** Sets another policy. Stored state stays, as in any store; another kind or number of shards is another limit. */
  define(/** @type {Config} */ config) {
    return this.#after(() => {
      const { kind, shards } = this.config;
      this.#limits = this.#defined(config);
      if (config.kind !== kind || config.shards !== shards) this.#states.clear();
      this.config = config;
    });
  }

  /**
   * One call, after those before it. Rejects with an `InputError` if a number is invalid.
   * @param {SandboxCall} call
   * @returns {Promise<Decision>}
   */
  decide({ op, count, reserve, now, random }) {
    return this.#after(() => {
      if (!OPS.includes(op)) throw new InputError("op", `one of ${OPS.join(", ")}`, op);
      if (!(typeof random === "number" && random >= 0 && random < 1)) {
        throw new InputError("random", "a number from 0 up to, but not, 1", random);
      }
      this.#now = now;
      this.#random = random;
      const options = op === "limit" || op === "check" ? { count, reserve } : { count };
      return this.#limits[op](NAME, options);
    });
  }

  /**
   * The two numbers at a time, of all shards together, and the config that projects them.
   * @param {number} now
   */
  value(now) {
    return this.#after(() => {
      this.#now = now;
      return this.#limits.getValue(NAME);
    });
  }

  /** Deletes all state. */
  reset() {
    return this.#after(() => this.#states.clear());
  }

  /** The stored rows, as in a database: one per shard that was taken from. */
  rows() {
    return [...this.#states].map(([id, { value, ts }]) => ({ id, value, ts }));
  }

  /** @param {Config} config */
  #defined(config) {
    if (config?.shards !== undefined && config.shards > MOST_SHARDS) {
      throw new InputError("shards", `at most ${MOST_SHARDS} here`, config.shards);
    }
    const rows = {
      get: (/** @type {string} */ id) => this.#states.get(id) ?? null,
      set: (/** @type {string} */ id, /** @type {State} */ state) => void this.#states.set(id, state),
      delete: (/** @type {string} */ id) => void this.#states.delete(id),
    };
    // Calls wait for each other (below), so each is a transaction by itself.
    const store = transactional({ name: NAME, transaction: (body) => body(rows), random: () => this.#random });
    return defineLimits({ [NAME]: config }, { store: { ...store, inTransaction: true }, now: () => this.#now });
  }

  /**
   * @template T
   * @param {() => T | Promise<T>} run
   * @returns {Promise<T>}
   */
  #after(run) {
    const result = this.#last.then(run);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
