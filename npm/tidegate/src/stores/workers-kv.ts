/**
 * State in Cloudflare Workers KV: approximate, for coarse quotas, as its type shows.
 *
 * @module
 */
import { layers } from "../limiter/layers.ts";
import { during } from "#workers";
import { checkSettings, FLAG, STRING } from "../limit/checks.ts";
import { InputError, showBinding } from "../limit/errors.ts";
import type { Limit } from "../limit/limit.ts";
import { combined } from "../limit/combined.ts";
import type { AsyncStore } from "./contract.ts";
import { type Cached, change, type KvNamespaceLike, NAME, States } from "./workers-kv/states.ts";

export type { KvNamespaceLike } from "./workers-kv/states.ts";

/** Settings of {@link workersKv}. */
export interface WorkersKvOptions {
  /** First part of every key; default `"tidegate:"`. */
  prefix?: string | undefined;
  /** Also allow `limitAll` and `reserve`, whose guarantees KV cannot keep: they are then approximate, too. Default false. */
  approximate?: boolean | undefined;
}

/** A store whose counts are approximate. */
export interface ApproximateStore extends AsyncStore {
  readonly approximate: true;
}

const OPTIONS = { prefix: STRING, approximate: FLAG };

/**
 * A store in a namespace of Workers KV. KV is eventually consistent: another location sees a write a minute late, and
 * of two writes the later one wins. So each location grants what it has read, and **in the worst case the
 * limit is granted once per isolate and minute**. That is right for a coarse quota (a thousand calls a day, no harm in
 * some more), and wrong for anything that costs money or protects a password: use `tidegate/durable-object` there.
 *
 * ```ts
 * const limits = defineLimits({ daily: { kind: "fixed window", rate: 1000, period: DAY } }, { store: workersKv(env.QUOTAS) });
 * ```
 *
 * An isolate reads a key once a minute and writes it once a second at most; what it granted in the last second before
 * it ends may be forgotten. Denied and checked calls change nothing. `limitAll` and `reserve` reject with an
 * `InputError` unless `approximate: true`; limits with `shards` always do. Throws an `InputError` where an argument is wrong.
 */
export function workersKv(namespace: KvNamespaceLike, options: WorkersKvOptions = {}): ApproximateStore {
  if (typeof namespace !== "object" || namespace === null || typeof namespace.put !== "function") {
    throw new InputError(
      "namespace",
      "a binding to a KV namespace, such as env.QUOTAS",
      namespace,
      showBinding(namespace, "kv_namespaces"),
    );
  }
  checkSettings("workersKv", options, OPTIONS);
  const { prefix = "tidegate:", approximate = false } = options;
  const states = new States(namespace, prefix);

  function refuse({ policy: { shards } }: Limit, reserve: boolean): void {
    if (shards !== 1) {
      throw new InputError("shards", "1 on Workers KV, where no key is contended for", shards);
    }
    if (reserve && !approximate) {
      throw new InputError(
        "reserve",
        "absent on Workers KV, which cannot promise it, unless `approximate: true`",
        true,
      );
    }
  }

  return {
    name: NAME,
    sync: false,
    layers,
    // A write to KV often takes longer than a caller waits, and would end with its request.
    during,
    approximate: true,
    async decide(call, now = Date.now()) {
      refuse(call.limit, call.reserve);
      const at = states.current(await states.look(call.limit, call.key, now));
      const decision = change(call, at, now);
      await states.write(at, now);
      return decision;
    },
    async decideAll(calls, now = Date.now()) {
      if (!approximate) {
        throw new InputError(
          "limitAll",
          "absent on Workers KV, which has no atomic step, unless `approximate: true`",
          calls,
        );
      }
      for (const call of calls) refuse(call.limit, call.reserve);
      const found = await Promise.all(calls.map((call) => states.look(call.limit, call.key, now)));
      const all = found.map((one) => states.current(one));
      const checks = calls.map((call, i) => change({ ...call, op: "check" }, all[i] as Cached, now));
      const answer = combined(checks, now);
      if (!answer.ok || calls[0]?.op === "check") return answer;
      for (const [i, call] of calls.entries()) change(call, all[i] as Cached, now);
      await Promise.all(all.map((at) => states.write(at, now)));
      return answer;
    },
    async reset(limit, key) {
      refuse(limit, false);
      await states.reset(limit, key);
    },
    async getValue(limit, key, now = Date.now()) {
      refuse(limit, false);
      return limit.project((await states.look(limit, key, now)).state, now, limit.start(key));
    },
  };
}
