/**
 * State in Cloudflare Durable Objects: exact, durable, near whoever asks first, by the object's clock.
 *
 * @module
 */
import { during } from "#durable-object";
import { checkFields, fieldTable } from "../limit/config.ts";
import type { State } from "../limit/decision.ts";
import { InputError, showInstead, StoreError } from "../limit/errors.ts";
import { checkLease, type LeaseOptions } from "../limiter/lease/options.ts";
import type { Limit } from "../limit/limit.ts";
import type { AsyncStore, Call, Deadline } from "./contract.ts";
import type { ObjectNamespace, ObjectStub } from "./durable-object/shapes.ts";
import {
  type Request,
  sent,
  type WireAll,
  type WireDecision,
  type WireStep,
  withPolicy,
} from "./durable-object/wire.ts";
import { wellFormed } from "./record.ts";
import { spreading } from "./spread.ts";

export { TidegateObject } from "./durable-object/object.ts";
export type { ObjectContext, ObjectNamespace, ObjectStorage } from "./durable-object/shapes.ts";

/** Settings of {@link durableObject}. */
export interface DurableObjectOptions {
  /**
   * Names the object that holds a limit's key: by default each limit and key has an object of its own, and no object
   * is everybody's. Give the same name to all of a tenant's, and `limitAll` is atomic among them; an object answers
   * some hundred calls a second. A limit of several shards has an object for each of them, so that a hot key is spread;
   * a function that leaves `shard` out of the name keeps them together.
   */
  object?: ((name: string, key: string | undefined, shard: number | undefined) => string) | undefined;
  /**
   * Takes tokens of hot keys ahead, to answer in the Worker's isolate: `true`, or the settings. Default: no. Define the
   * limits once, at global scope (`import { env } from "cloudflare:workers"`): what is in hand lives as long as they.
   */
  lease?: boolean | LeaseOptions | undefined;
}

const OPTIONS = fieldTable("object", "lease");

/** Requires the RPC of Workers, where the runtime reports whether it is on. */
function checkRpc(): void {
  const { Cloudflare } = globalThis as { Cloudflare?: { compatibilityFlags?: { rpc?: boolean } } };
  if (Cloudflare?.compatibilityFlags?.rpc !== false) return;
  throw new InputError(
    "compatibility_date",
    "2024-04-03 or later: objects are called by RPC",
    undefined,
    "an earlier one",
  );
}

/**
 * A store in the namespace of objects that the Worker is bound to: one RPC a call, whatever the number of limits.
 *
 * ```ts
 * export { TidegateObject } from "tidegate/durable-object";
 *
 * export default {
 *   async fetch(request, env) {
 *     const limits = defineLimits({ api: { kind: "token bucket", rate: 10, period: MINUTE } }, { store: durableObject(env.LIMITS) });
 *     const { ok } = await limits.limit("api", { key: request.headers.get("cf-connecting-ip") ?? "" });
 *     return new Response(ok ? "hello" : "slow down", { status: ok ? 200 : 429 });
 *   },
 * };
 * ```
 *
 * `limitAll` and `checkAll` on limits of more than one object reject with an `InputError`, before anything is taken.
 * Whatever an object rejects with comes as a `StoreError`. Throws an `InputError` where the namespace or an option is
 * wrong, and where the Worker's `compatibility_date` is before 2024-04-03.
 */
export function durableObject(namespace: ObjectNamespace, options: DurableObjectOptions = {}): AsyncStore {
  if (typeof namespace !== "object" || namespace === null || typeof namespace.idFromName !== "function") {
    throw new InputError(
      "namespace",
      "a binding to a namespace of Durable Objects, such as env.LIMITS",
      namespace,
      showInstead(namespace),
    );
  }
  checkRpc();
  if (typeof options !== "object" || options === null) throw new InputError("options", "an object", options);
  checkFields(options, OPTIONS, "durableObject");
  const { object, lease } = options;
  checkLease(lease);
  if (object !== undefined && typeof object !== "function") {
    throw new InputError("object", "a function that names the object of a limit and key", object);
  }

  function objectOf(limit: Limit, key: string | undefined, shard?: number): string {
    if (object === undefined) return limit.identity(key, shard);
    const name: unknown = object(limit.name, key, shard);
    if (typeof name !== "string") throw new InputError("object", "a function that returns a string", name);
    return name;
  }

  async function ask(name: string, identity: string, request: Request, deadline: Deadline): Promise<unknown> {
    const stub = namespace.get(namespace.idFromName(wellFormed(name))) as ObjectStub;
    const timeout = deadline === undefined ? undefined : deadline - performance.now();
    const reply = await stub.ask({ ...request, timeout });
    if ("answer" in reply) return reply.answer;
    if ("failure" in reply) {
      const { what, identity: of, scope } = reply.failure;
      throw new StoreError(what, { store: NAME, operation: request.ask, identity: of === "" ? identity : of, scope });
    }
    const { field, rule, message } = reply.input;
    throw Object.assign(new InputError(field, rule, undefined), { message });
  }

  /** Whether the shards of a limit and key have objects of their own. */
  function isApart(limit: Limit, key: string | undefined): boolean {
    return limit.policy.shards > 1 && objectOf(limit, key, 0) !== objectOf(limit, key, 1);
  }

  /** The object of a limit and key; of all its shards, where they are together. */
  function placeOf(limit: Limit, key: string | undefined): string {
    return objectOf(limit, key, limit.policy.shards > 1 ? 0 : undefined);
  }

  /** One call on one limit: where `shard` is absent, on the object of all its shards. */
  function askOne(request: Pick<Request, "ask" | "now" | "shard">, call: Call, deadline: Deadline): Promise<unknown> {
    const { limit, key } = call;
    const { shard } = request;
    const name = shard === undefined ? placeOf(limit, key) : objectOf(limit, key, shard);
    return ask(name, limit.identity(key, shard), { ...request, calls: [sent(call)] }, deadline);
  }

  /** `reset` and `getValue` are sent as calls that take nothing. */
  const nothing = (limit: Limit, key: string | undefined): Call => ({
    op: "check",
    limit,
    key,
    count: 0,
    reserve: false,
  });

  const store: AsyncStore = {
    name: NAME,
    sync: false,
    async decide(call, now, deadline) {
      return withPolicy((await askOne({ ask: "decide", now }, call, deadline)) as WireDecision, call.limit);
    },
    async decideAll(calls, now, deadline) {
      const objects = new Set(calls.map(({ limit, key }) => placeOf(limit, key)));
      const [first = ""] = objects;
      if (objects.size > 1 || calls.some(({ limit, key }) => isApart(limit, key))) {
        const rule = "on limits of one object, which durableObject's option `object` can put them in";
        const got = objects.size > 1 ? `${objects.size} objects` : "shards in objects of their own";
        throw new InputError("requests", rule, calls, got);
      }
      const identity = calls.map(({ limit, key }) => limit.identity(key)).join(",");
      const all = (await ask(first, identity, { ask: "decideAll", calls: calls.map(sent), now }, deadline)) as WireAll;
      return { ...all, decisions: all.decisions.map((one, i) => withPolicy(one, (calls[i] as Call).limit)) };
    },
    reset: async (limit, key, deadline) =>
      void (await askOne({ ask: "reset", now: undefined }, nothing(limit, key), deadline)),
    getValue: (limit, key, now, deadline) =>
      askOne({ ask: "getValue", now }, nothing(limit, key), deadline) as Promise<State>,
  };

  return {
    ...spreading(store, {
      isApart,
      async step(call, shard, now, deadline) {
        const { before, decision } = (await askOne({ ask: "decide", now, shard }, call, deadline)) as WireStep;
        return { before, decision: withPolicy(decision, call.limit), now: decision.now };
      },
      reset: async (limit, key, shard, deadline) =>
        void (await askOne({ ask: "reset", now: undefined, shard }, nothing(limit, key), deadline)),
    }),
    lease,
    during,
    nodeOf: (limit, key) =>
      isApart(limit, key) ? "the objects of all shards" : `object group ${groupOf(placeOf(limit, key))}`,
  };
}

const NAME = "durable-object";
/** Objects are too many for a breaker each. */
const GROUPS = 64;

function groupOf(name: string): number {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (Math.imul(hash, 31) + name.charCodeAt(i)) | 0;
  return (hash >>> 0) % GROUPS;
}
