/**
 * State in Cloudflare Durable Objects: exact, durable, near its first caller, by the object's clock.
 *
 * @module
 */
import { layers } from "../limiter/layers.ts";
import { during } from "#workers";
import { ANY, checkTable, functionThat, hasMethods } from "../limit/checks.ts";
import type { State } from "../limit/decision.ts";
import { InputError, showBinding } from "../limit/errors.ts";
import { checkLease, type LeaseOptions } from "../limiter/lease/options.ts";
import { LOOK } from "../limit/evaluator.ts";
import type { Limit } from "../limit/limit.ts";
import { pick } from "../limit/shards.ts";
import type { AsyncStore, Call, Deadline, Key, Now } from "./contract.ts";
import type { ObjectNamespace, ObjectStub } from "./durable-object/shapes.ts";
import {
  NAME,
  onShards,
  type Request,
  sender,
  sent,
  type WireAll,
  type WireDecision,
  withPolicy,
} from "./durable-object/wire.ts";
import { wellFormed } from "./record.ts";
import { shardsOf } from "./sharded.ts";

export { TidegateObject } from "./durable-object/object.ts";
export type { ObjectContext, ObjectNamespace, ObjectStorage } from "./durable-object/shapes.ts";

/** Settings of {@link durableObject}. */
export interface DurableObjectOptions {
  /**
   * Names the object that stores a limit and key. By default each limit and key has its own object. With one name for all limits
   * of a tenant, `limitAll` is atomic among them; an object handles some hundred calls per second. A limit with several shards
   * has an object for each of them, so that a hot key is spread. If the name does not contain `shard`, they share one object.
   */
  object?: ((name: string, key: Key, shard: number | undefined) => string) | undefined;
  /**
   * Takes tokens of hot keys ahead, to decide in the Worker's isolate: `true`, or the settings. Default: no. Define the limits
   * once, at global scope (`import { env } from "cloudflare:workers"`): leased tokens end with the limits.
   */
  lease?: boolean | LeaseOptions | undefined;
}

const OPTIONS = { object: functionThat("a function that names the object of a limit and key"), lease: ANY };

/** Requires the RPC of Workers, if the runtime reports whether it is on. */
function checkRpc(): void {
  const { Cloudflare } = globalThis as { Cloudflare?: { compatibilityFlags?: { rpc?: boolean } } };
  if (Cloudflare?.compatibilityFlags?.rpc !== false) return;
  const rule = "2024-04-03 or later: objects are called by RPC";
  throw new InputError("compatibility_date", rule, undefined, "an earlier one");
}

/**
 * A store in the namespace of objects that the Worker is bound to: one RPC per call, whatever the number of limits and
 * shards. The object of one shard calls the objects of the others, by a binding of its Worker to the same namespace.
 * Without one, as for objects of another Worker, the store calls each.
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
 * An error of an object is a `StoreError`. Throws an `InputError` if the namespace or an option is
 * wrong, and if the Worker's `compatibility_date` is before 2024-04-03.
 */
export function durableObject(namespace: ObjectNamespace, options: DurableObjectOptions = {}): AsyncStore {
  // Not by `checkMethods`, which no other part of a Worker needs.
  if (!hasMethods(namespace, "idFromName")) {
    const got = showBinding("durable_objects.bindings")(namespace);
    throw new InputError("namespace", "a binding of Durable Objects, such as env.LIMITS", namespace, got);
  }
  checkRpc();
  checkTable("durableObject", options, OPTIONS);
  const { object, lease } = options;
  checkLease(lease);

  function objectOf(limit: Limit, key: Key, shard?: number): string {
    if (object === undefined) return limit.identity(key, shard);
    const name: unknown = object(limit.name, key, shard);
    if (typeof name !== "string") throw new InputError("object", "a function that returns a string", name);
    return name;
  }

  const send = sender((name, request) =>
    (namespace.get(namespace.idFromName(wellFormed(name))) as ObjectStub).handle(request),
  );
  /** Whether the objects of this namespace have no binding to call each other by. */
  let alone = false;

  /** The objects of the shards of a limit and key, if they have their own objects. */
  function objectsOf(limit: Limit, key: Key): string[] | undefined {
    if (limit.policy.shards === 1 || objectOf(limit, key, 0) === objectOf(limit, key, 1)) return undefined;
    return shardsOf(limit).map((shard) => objectOf(limit, key, shard));
  }

  /** The object of a limit and key; of all its shards, if they are together. */
  function placeOf(limit: Limit, key: Key): string {
    return objectOf(limit, key, limit.policy.shards > 1 ? 0 : undefined);
  }

  /** One call on one limit: one request to an object. If shards are apart, that object calls the others. */
  async function run(operation: "decide" | "reset" | "getValue", call: Call, now: Now, deadline: Deadline) {
    const { limit, key } = call;
    const request: Request = { operation, calls: [sent(call)], now };
    const objects = objectsOf(limit, key);
    if (objects === undefined) return (await send(placeOf(limit, key), request, deadline))?.answer;
    if (!alone) {
      const random = Math.random();
      const reply = await send(objects[pick(limit, random)[0]] as string, { ...request, objects, random }, deadline);
      if (reply !== undefined) return reply.answer;
      alone = true;
    }
    return onShards(request, objects, send, deadline);
  }

  return {
    name: NAME,
    sync: false,
    layers,
    lease,
    during,
    nodeOf: (limit, key) =>
      `${objectsOf(limit, key) === undefined ? "object" : "shard"} group ${groupOf(placeOf(limit, key))}`,
    async decide(call, now, deadline) {
      const never = call.limit.never(call, now ?? Date.now());
      return never ?? withPolicy((await run("decide", call, now, deadline)) as WireDecision, call.limit);
    },
    async decideAll(calls, now, deadline) {
      const objects = new Set(calls.map(({ limit, key }) => placeOf(limit, key)));
      const [first = ""] = objects;
      const apart = calls.some(({ limit, key }) => objectsOf(limit, key) !== undefined);
      if (objects.size > 1 || apart) {
        const rule = "on limits of one object, which durableObject's option `object` can put them in";
        const got = objects.size > 1 ? `${objects.size} objects` : "shards in objects of their own";
        throw new InputError("requests", rule, calls, got);
      }
      const reply = await send(first, { operation: "decideAll", calls: calls.map(sent), now }, deadline);
      const all = reply?.answer as WireAll;
      return { ...all, decisions: all.decisions.map((one, i) => withPolicy(one, (calls[i] as Call).limit)) };
    },
    async reset(limit, key, deadline) {
      await run("reset", { ...LOOK, limit, key }, undefined, deadline);
    },
    getValue: async (limit, key, now, deadline) =>
      (await run("getValue", { ...LOOK, limit, key }, now, deadline)) as State,
  };
}

/** Objects are too many for a breaker each. */
const GROUPS = 64;

function groupOf(name: string): number {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (Math.imul(hash, 31) + name.charCodeAt(i)) | 0;
  return (hash >>> 0) % GROUPS;
}
