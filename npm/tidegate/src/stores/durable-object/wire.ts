/** What is sent between the store and its object: plain objects, as RPC drops functions, classes and fields of errors. */
import type { Config } from "../../limit/config.ts";
import type { AllDecision, Decision, State } from "../../limit/decision.ts";
import { isInputError, isStoreError, messageOf } from "../../limit/errors.ts";
import { limitOf } from "../../limit/evaluate.ts";
import type { Limit } from "../../limit/limit.ts";
import type { Call, Op } from "../contract.ts";

/** One call, with its config, which the object checks again. */
export interface WireCall {
  op: Op;
  name: string;
  config: Config;
  key: string | undefined;
  count: number;
  reserve: boolean;
}

/** A request of the store to an object. */
export interface Request {
  ask: "decide" | "decideAll" | "reset" | "getValue";
  calls: readonly WireCall[];
  /** The shard, where each has an object of its own: decided by the shard's rule. */
  shard?: number | undefined;
  /** Epoch ms; absent, the object's own clock decides. */
  now: number | undefined;
  /** Ms that the caller still waits: a call that is queued longer is not run. Absent: no deadline. */
  timeout?: number | undefined;
}

/** A decision without its policy, which the store has. */
export type WireDecision = Omit<Decision, "policy">;
export type WireAll = Omit<AllDecision, "decisions"> & { decisions: WireDecision[] };

/** The result of a step on one shard. */
export interface WireStep {
  before: State | null;
  decision: WireDecision;
}

export type Answer = WireDecision | WireAll | WireStep | State | undefined;

/** An answer, or the error. */
export type Reply =
  | { answer: Answer }
  | { input: { field: string; rule: string; message: string } }
  | { failure: { what: string; identity: string; scope: "key" | "store" } };

/** Sends the policy: a config with every default filled in. */
export function sent({ op, limit, key, count, reserve }: Call): WireCall {
  const { name, ...config } = limit.policy;
  return { op, name, config: config as Config, key, count, reserve };
}

export function received({ op, name, config, key, count, reserve }: WireCall): Call {
  return { op, limit: limitOf(name, config), key, count, reserve };
}

export function withoutPolicy({ policy: _policy, ...rest }: Decision): WireDecision {
  return rest;
}

export const withPolicy = (decision: WireDecision, limit: Limit): Decision => ({ ...decision, policy: limit.policy });

/** An error as plain fields. */
export function refused(error: unknown): Reply {
  if (isInputError(error)) return { input: { field: error.field, rule: error.rule, message: error.message } };
  const { identity, scope } = isStoreError(error) ? error : { identity: "", scope: "store" as const };
  return { failure: { what: messageOf(error), identity, scope } };
}
