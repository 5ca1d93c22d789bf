/** One limit on states that the caller keeps: the algebra, which the engine has, as an object. */
import { decisionOf, type Numbers, refusal } from "../engine/answer.ts";
import { NAME_EXPECTS } from "../engine/generated/bounds.ts";
import { INPUT_ERROR, KINDS, OP, OPS, RESERVE, WRITES } from "../engine/generated/wire.ts";
import { checkObject } from "./checks.ts";
import {
  type Config,
  numberError,
  type OnStoreError,
  type Policy,
  readConfig,
  startNumber,
  writePolicy,
} from "./config.ts";
import type { Decision, Op, Operation, State } from "./decision.ts";
import { InputError } from "./errors.ts";

/** The decision on a state of the caller's, and the state to store. */
export interface Evaluation {
  /** What the limit decides. */
  decision: Decision;
  /** The new state, or what was passed (`null` included) if nothing is to be written. */
  state: State | null;
}

/** The algebra of an engine, and the eight numbers of a call. Not `Algebra`, which needs the types of WebAssembly. */
interface Calls {
  readonly numbers: Numbers;
  readonly wasm: { evaluate(...numbers: number[]): number };
}

/** Takes nothing: its decision has the state as it is, and when it is full. */
export const LOOK: Operation = { op: "check", count: 0, reserve: false };
const NAME = /^[A-Za-z0-9_.-]{1,64}$/;

/** Returns a limit's name; throws if it is not legal. */
export function checkName(name: unknown): string {
  if (typeof name !== "string" || !NAME.test(name)) throw new InputError("name", NAME_EXPECTS, name);
  return name;
}

/** Reads the two numbers of a caller's state once, or names what is wrong with them. */
export function checkState(state: unknown, expects = "{ value, ts }"): State {
  checkObject("state", state, expects);
  const { value, ts } = state as State;
  if (!Number.isFinite(value)) throw numberError("value", value);
  if (!Number.isFinite(ts)) throw numberError("ts", ts);
  return { value, ts };
}

/** The operation and `reserve` of a call, as the engine reads them. */
export const flagsOf = ({ op, reserve }: Operation): number => OPS[op] | (reserve ? RESERVE : 0);

const OP_NAMES = /* @__PURE__ */ Object.keys(OPS) as readonly Op[];

/** The operation of such flags. */
export const opOf = (flags: number): Op => OP_NAMES[flags & OP] as Op;

/** A policy's complete config, for `project`. `start` is the key's, if the policy has none. */
export function configOf({ name: _, kind, start, ...numbers }: Policy, ofKey: number): Config {
  return kind === "token bucket" ? { kind, ...numbers } : { kind, ...numbers, start: start ?? ofKey };
}

/** A named policy, checked, with the algebra on states that the caller keeps. It reads no clock and no random number. */
export class Evaluator {
  readonly name: string;
  readonly policy: Policy;
  readonly onStoreError: OnStoreError | undefined;
  readonly timeout: number | undefined;
  readonly #algebra: Calls;

  /** Checks name and config; throws an `InputError` that names field, value and rule. */
  constructor(name: string, config: Config, algebra: Calls) {
    this.name = checkName(name);
    const { policy, onStoreError, timeout } = readConfig(name, config);
    this.policy = policy;
    this.onStoreError = onStoreError;
    this.timeout = timeout;
    this.#algebra = algebra;
    // The engine checks the ranges at each call.
    this.evaluate(null, LOOK, 0);
  }

  /**
   * One call on a state that the caller keeps: pure. `null` is a fresh key. With `shard`, the state is one shard's
   * and the limit's numbers are divided by how many there are.
   */
  evaluate(
    state: State | null,
    call: Operation,
    now: number,
    at: { start: number; shard?: boolean } = { start: 0 },
  ): Evaluation {
    const { policy } = this;
    const value = state === null ? Number.NaN : state.value;
    const ts = state === null ? 0 : state.ts;
    const start =
      policy.kind === "token bucket" ? 0 : policy.start === undefined ? at.start : startNumber(policy.start);
    const [kind, shard] = [KINDS.indexOf(policy.kind), at.shard === true ? 1 : 0];
    writePolicy(this.#algebra.numbers, policy, start);
    const status = this.#algebra.wasm.evaluate(kind, shard, value, ts, now, call.count, flagsOf(call));
    if (status >= INPUT_ERROR) {
      const { count } = call;
      throw refusal(status, { ...policy, count, for: count, now, value, ts, start: policy.start ?? start });
    }
    const { numbers } = this.#algebra;
    const decision = decisionOf(status, numbers, policy, Math.floor(now));
    const written = (status & WRITES) !== 0;
    return { decision, state: written ? { value: numbers[5], ts: numbers[6] } : state };
  }

  /** The state as it is at `now`: pure. */
  project(state: State | null, now: number, start: number): State {
    const { value, ts } = this.evaluate(state, LOOK, now, { start }).decision;
    return { value, ts };
  }

  /** First ms (epoch) from `now` on at which the state is full: from then on a store may drop it. */
  fullAt(state: State | null, now: number, at: { start: number; shard?: boolean }): number {
    return this.evaluate(state, LOOK, now, at).decision.resetAt;
  }
}
