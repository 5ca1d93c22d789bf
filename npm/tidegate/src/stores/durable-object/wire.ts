/** What a store sends to an object, and objects to each other: plain objects, as RPC drops functions and classes. */
import type { Config } from "../../limit/config.ts";
import type { AllDecision, Decision, State } from "../../limit/decision.ts";
import { InputError, isInputError, messageOf, StoreError } from "../../limit/errors.ts";
import { callLimit } from "../../limit/limit.ts";
import type { Limit } from "../../limit/limit.ts";
import type { Call, Deadline } from "../contract.ts";
import { failure, KeyError, LITTLE_TIME } from "../failure.ts";
import { decide, getValue, type Shards } from "../sharded.ts";

export const NAME = "durable-object";

/** One call, with its config, which the object checks again. */
interface WireCall extends Omit<Call, "limit"> {
  readonly name: string;
  readonly config: Config;
}

export interface Request {
  operation: "decide" | "decideAll" | "reset" | "getValue";
  calls: readonly WireCall[];
  /** The shard, if each has its own object: decided by the shard's rule. */
  shard?: number | undefined;
  /** The objects of all shards, if the request is for all: the object that gets it calls the others. */
  objects?: readonly string[] | undefined;
  /** With `objects`: picks two shards; the request goes to the first one's object. */
  random?: number | undefined;
  /** Epoch ms; absent, the object's own clock decides. */
  now: number | undefined;
  /** Ms that the caller still waits: a call that is queued longer is not run. Absent: no deadline. */
  timeout?: number | undefined;
}

/** A decision without its policy, which the store has. */
export type WireDecision = Omit<Decision, "policy">;
export type WireAll = Omit<AllDecision, "decisions"> & { decisions: WireDecision[] };

/** The result of a step on one shard. */
interface WireStep {
  before: State | null;
  decision: WireDecision;
}

export type Answer = WireDecision | WireAll | WireStep | State | undefined;

/** An answer, or the error; `alone` if the object has no binding to call the other shards by. */
export type Reply =
  | { answer: Answer }
  | { alone: true }
  | { input: { field: string; rule: string; message: string } }
  | { failure: { what: string; identity: string; scope: "key" | "store" } };

/** Sends the policy: a config with every default filled in. */
export function sent({ op, limit, key, count, reserve }: Call): WireCall {
  const { name, ...config } = limit.policy;
  return { op, name, config, key, count, reserve };
}

export function received({ op, name, config, key, count, reserve }: WireCall): Call {
  return { op, limit: callLimit(name, config), key, count, reserve };
}

export function withoutPolicy({ policy: _policy, ...rest }: Decision): WireDecision {
  return rest;
}

export const withPolicy = (decision: WireDecision, limit: Limit): Decision => ({ ...decision, policy: limit.policy });

/** The reply with an error; `scope`: of a failure of the object's own. */
export function refused(thrown: unknown, scope?: "key"): Reply {
  const error = failure(thrown, { store: NAME, operation: "", identity: "" });
  if (isInputError(error)) return { input: { field: error.field, rule: error.rule, message: error.message } };
  return { failure: { what: messageOf(thrown), identity: error.identity, scope: scope ?? error.scope } };
}

/** One request to the object of this name; `undefined` if it is alone. */
type Send = (object: string, request: Request, deadline: Deadline) => Promise<{ answer: Answer } | undefined>;

/** Sends by the method `handle` of each object. */
export function sender(callObject: (object: string, request: Request) => Promise<Reply>): Send {
  /** Deadlines of the calls that are out since the last reply of their object. */
  const out = new Map<string, NonNullable<Deadline>[]>();
  return async (object, request, deadline) => {
    const timeout = deadline === undefined ? undefined : deadline.at - performance.now();
    const calls = out.get(object) ?? [];
    out.set(object, calls);
    if (deadline !== undefined) calls.push(deadline);
    let reply: Reply;
    try {
      reply = await callObject(object, { ...request, timeout });
      // An object carries out one call after another: the others wait, which is not an outage.
      for (const waiting of out.get(object) ?? []) if (waiting !== deadline) waiting.why = LITTLE_TIME;
    } catch (error) {
      // The runtime marks errors that concern this object alone. `remote`: its own code threw it, in a subclass.
      const { overloaded, durableObjectReset, remote } = Object(error);
      throw overloaded || durableObjectReset || remote ? new KeyError(messageOf(error), true) : error;
    } finally {
      out.delete(object);
    }
    // A subclass may call `super.handle` without `return`.
    if (!(reply as Reply | undefined)) throw new TypeError("`handle` must return what `super.handle` returns");
    if ("answer" in reply) return reply;
    if ("alone" in reply) return undefined;
    if ("failure" in reply) {
      const { what, identity, scope } = reply.failure;
      const own = request.calls.map(({ name, config, key }) => callLimit(name, config).identity(key, request.shard));
      const { operation } = request;
      throw new StoreError(what, { store: NAME, operation, identity: identity || own.join(","), scope });
    }
    const { field, rule, message } = reply.input;
    throw Object.assign(new InputError(field, rule, undefined), { message });
  };
}

/** Carries out a request on a limit whose shards are `objects`, by one request for each step on a shard. */
export async function onShards(
  request: Request,
  objects: readonly string[],
  send: Send,
  deadline: Deadline,
): Promise<Answer> {
  const { operation, calls, now, random } = request;
  const [call] = calls.map(received) as [Call];
  const { limit, key } = call;
  const step = async (part: Pick<Request, "operation" | "calls">, shard: number, until: Deadline): Promise<Answer> =>
    (await send(objects[shard] as string, { ...part, shard, now }, until))?.answer;
  const shards: Shards = {
    async step(one, shard, _now, until) {
      const { before, decision } = (await step({ operation: "decide", calls: [sent(one)] }, shard, until)) as WireStep;
      return { before, decision: withPolicy(decision, limit), now: decision.now };
    },
  };
  if (operation === "getValue") return getValue(shards, limit, key, now, deadline);
  if (operation === "decide") return withoutPolicy(await decide(shards, call, now, deadline, random));
  await Promise.all(objects.map((_, shard) => step({ operation, calls }, shard, deadline)));
  return undefined;
}
