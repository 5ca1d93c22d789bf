/**
 * A limit of a store: config.ts checks it, evaluator.ts decides with it, and this file adds what depends on the key.
 */
import { refusal } from "../engine/answer.ts";
import { type Engine, engine } from "../engine/engine.ts";
import { KINDS, NONE } from "../engine/generated/wire.ts";
import { releasedWith } from "../engine/release.ts";
import { cached } from "./cached.ts";
import { type Config, startNumber, writePolicy } from "./config.ts";
import type { Decision, Operation } from "./decision.ts";
import { Evaluator } from "./evaluator.ts";

/** Registers a limit with a table of an engine, and returns its number there. A store of another realm has its own engine. */
export function register({ name, policy }: Evaluator, table: number, engine: Engine): number {
  writePolicy(engine.numbers, policy);
  const made = engine.wasm.limit_new(table, engine.writeKey(name), KINDS.indexOf(policy.kind));
  if (made < 0) throw refusal(-made, policy);
  return made;
}

/** A limit of a store: an {@link Evaluator} whose keys have their own window grids. */
export class Limit extends Evaluator {
  readonly #engine: Engine;
  /** Its number in the engine, where the start of a key's window grid is derived from its name. */
  #registered: number | undefined;

  /** Checks name and config; throws an `InputError` that names field, value and rule. */
  constructor(name: string, config: Config) {
    const loaded = engine();
    super(name, config, loaded);
    this.#engine = loaded;
  }

  get #handle(): number {
    if (this.#registered === undefined) {
      this.#registered = register(this, NONE, this.#engine);
      releasedWith(this, this.#engine.wasm.limit_drop, this.#registered);
    }
    return this.#registered;
  }

  /** `name`, then `/shard` if there are several, then `:key` if there is one. No two pairs of name and key have the same. */
  identity(key: string | undefined, shard?: number): string {
    const part = shard === undefined || this.policy.shards === 1 ? this.name : `${this.name}/${shard}`;
    return key === undefined ? part : `${part}:${key}`;
  }

  /**
   * Where the key's window grid starts: the policy's `start`, else derived from name and key. Infinite: at the first request.
   * 0 for a token bucket.
   */
  start(key: string | undefined): number {
    const { kind, start } = this.policy;
    if (kind === "token bucket") return 0;
    if (start !== undefined) return startNumber(start);
    // First, because registering writes the name where the key goes.
    const handle = this.#handle;
    return this.#engine.wasm.start(handle, this.#engine.writeKey(key));
  }

  /** The denial of a request that no wait helps, which is decided before any state is read; otherwise `undefined`. */
  never(call: Operation, now: number): Decision | undefined {
    if (call.count <= this.policy.capacity && !call.reserve) return undefined;
    // A fresh key is full: what it denies for its capacity, every state does.
    const { decision } = this.evaluate(null, call, now);
    return decision.reason === "exceeds capacity" ? decision : undefined;
  }
}

const cachedLimit = /* @__PURE__ */ cached((name, config) => new Limit(name, config));
const prepared = /* @__PURE__ */ new WeakMap<Config, Limit>();

/** The limit of a config that is passed with a call. */
export function callLimit(name: string, config: Config): Limit {
  const limit = prepared.get(config);
  return limit !== undefined && limit.name === name ? limit : cachedLimit(name, config);
}

/** A frozen copy of a config, whose limit of this name is found by the object, without reading its fields. */
export function prepare(name: string, config: Config): Config {
  const frozen = Object.freeze({ ...config });
  prepared.set(frozen, new Limit(name, frozen));
  return frozen;
}
