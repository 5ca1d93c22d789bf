// Limits on stores, and queues of calls, that all requests of an isolate share, defined at global scope.
import { env } from "cloudflare:workers";
import { defineLimits, HOUR, SECOND } from "tidegate";
import { createFetch, throttle } from "tidegate/client";
import { durableObject } from "tidegate/durable-object";
import { dynamodb } from "tidegate/dynamodb";
import { postgres } from "tidegate/postgres";
import { redis } from "tidegate/redis";
import { sqlite } from "tidegate/sqlite";

/** Ms that statements wait, in the context of the request that sends them. */
let pause = 0;
const waiting = async () => {
  if (pause > 0) await scheduler.wait(pause);
};
const slowD1 = {
  prepare: (sql) => ({
    bind: (...values) => ({
      async all() {
        await waiting();
        return env.DB.prepare(sql)
          .bind(...values)
          .all();
      },
    }),
  }),
  batch() {},
};
/** Stands for a server that is called by HTTP. */
const called = () => waiting().then(() => Promise.reject(new Error("the server was called")));
const global = { kind: "token bucket", rate: 100, period: 1000 * HOUR };
const ofIsolate = Object.fromEntries(
  Object.entries({
    d1: sqlite(slowD1),
    redis: redis({ eval: called, evalsha: called }),
    postgres: postgres({ query: called }),
    dynamodb: dynamodb({
      getItem: called,
      putItem: called,
      deleteItem: called,
      transactGetItems: called,
      transactWriteItems: called,
    }),
  }).map(([name, store]) => [name, defineLimits({ global }, { store, timeout: 10_000, log: false })]),
);

/** A call that waits for so many ms, and what came of it; `forgotten`: the response does not wait for it. */
export async function shared({ store, key, wait = 0, forgotten }) {
  pause = Number(wait);
  // One that waits is to be late; a busy machine makes no other so.
  const config = wait > 0 ? { ...global, timeout: 2000 } : global;
  const call = ofIsolate[store].limit("global", { key, config });
  if (forgotten !== undefined) return undefined;
  const { ok, cause } = await call;
  return { ok, cause: cause?.message };
}

const configs = { paced: { kind: "token bucket", rate: 10, period: SECOND, capacity: 1 } };
const pacedBy = {
  memory: defineLimits(configs),
  objects: defineLimits(configs, { store: durableObject(env.LIMITS), timeout: 10_000 }),
};
/** When a request's call ran that waited its turn: its queue and timer are the request's own, the limit is everyone's. */
export const paced = ({ store, by }) => {
  const limit = { limiter: pacedBy[store], name: "paced", key: by };
  if (by === "throttle") return throttle(() => scheduler.wait(1).then(() => Date.now()), limit)();
  return createFetch({ limit })("data:,").then(() => Date.now());
};
