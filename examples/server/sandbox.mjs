// A limit to play with: its policy may change at any time, and each call brings its own clock and its own random number.
// The page runs this very file too, on WebAssembly of its own. So the same calls must leave the same numbers on both sides.
import { defineLimits, InputError } from "tidegate";
import { transactional } from "tidegate/store";

/**
 * @typedef {import("tidegate").Config} Config
 * @typedef {import("tidegate").Decision} Decision
 * @typedef {import("tidegate").State} State
 * @typedef {"limit" | "check" | "give" | "charge"} Op
 * @typedef {{ op: Op, count: number, reserve: boolean, now: number, random: number }} SandboxCall
 *   `now` is epoch ms; `random`, from 0 up to 1, picks the two shards that are looked at first.
 */

/** The most shards here: each is a state to keep for every visitor. */
export const MOST_SHARDS = 16;
/** @type {readonly unknown[]} */
const OPS = ["limit", "check", "give", "charge"];
const NAME = "sandbox";

export class Sandbox {
  /** @type {Map<string, State>} */
  #states = new Map();
  /** The clock and the random number of the call that is being decided. */
  #now = 0;
  #random = 0;
  /** @type {Promise<unknown>} */
  #last = Promise.resolve();
  /** @type {import("tidegate").Limiter<"sandbox", import("tidegate").AsyncStore>} */
  #limits;
  /** @type {Config} */
  config;

  /** @param {Config} config Throws an `InputError` where it is none. */
  constructor(config) {
    this.#limits = this.#defined(config);
    this.config = config;
  }

  /** Another policy from now on. What is stored stays, as in any store; of another kind or sharding it is another limit. */
  define(/** @type {Config} */ config) {
    return this.#after(() => {
      const { kind, shards } = this.config;
      this.#limits = this.#defined(config);
      if (config.kind !== kind || config.shards !== shards) this.#states.clear();
      this.config = config;
    });
  }

  /**
   * One call, after those before it. Rejects with an `InputError` where a number is none.
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

  /** Forgets everything that was taken. */
  reset() {
    return this.#after(() => this.#states.clear());
  }

  /** What is stored, as a database would have it: a row for each shard that was taken from. */
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
