// Runs the suites inside workerd, and serves the requests of tests on objects.
import { env as bindings } from "cloudflare:workers";
import { defineLimits, HOUR } from "tidegate";
import { durableObject, TidegateObject } from "tidegate/durable-object";
import { sqlite } from "tidegate/sqlite";
import { workersKv } from "tidegate/workers-kv";
import few from "./few.js";
import { inMemory } from "./memory.js";
import { policies } from "./policies.js";
import { report } from "./report.js";
import { paced, shared } from "./requests.js";
import vectors from "./vectors.js";

export { TidegateObject };

/** Also returns its storage, counts writes, and can be evicted from memory. */
export class Watched extends TidegateObject {
  #writes = 0;
  #calls = 0;

  constructor(ctx, env) {
    const { storage } = ctx;
    for (const method of ["put", "delete", "setAlarm", "deleteAll"]) {
      const before = storage[method].bind(storage);
      Object.defineProperty(storage, method, {
        value: (...args) => {
          this.#writes++;
          return before(...args);
        },
      });
    }
    super(ctx, env);
  }

  writes() {
    return this.#writes;
  }

  handle(request) {
    this.#calls++;
    return super.handle(request);
  }

  calls() {
    return this.#calls;
  }

  async bytes(id) {
    const bytes = await this.ctx.storage.get(id);
    return bytes === undefined ? null : [...bytes];
  }

  async count() {
    return (await this.ctx.storage.list()).size;
  }

  corrupt(id, bytes) {
    return this.ctx.storage.put(id, bytes);
  }

  /** A table of a subclass's own. */
  note() {
    this.ctx.storage.sql.exec("CREATE TABLE notes (note TEXT)");
    this.ctx.storage.sql.exec("INSERT INTO notes VALUES ('kept')");
  }

  notes() {
    return [...this.ctx.storage.sql.exec("SELECT note FROM notes")].map(({ note }) => note);
  }

  alarmAt() {
    return this.ctx.storage.getAlarm();
  }

  evict() {
    this.ctx.abort("evicted by a test");
  }
}

/** The same on storage that is not SQLite. */
export class Classic extends Watched {}

/** Awaits something before each call: concurrent calls that wait for it resume together. */
export class Late extends TidegateObject {
  #loading;

  async handle(request) {
    this.#loading ??= scheduler.wait(50).then(() => {
      this.#loading = undefined;
    });
    await this.#loading;
    return super.handle(request);
  }
}

/** The same on storage that is not SQLite. */
export class LateClassic extends Late {}

/** Reads slowly, so that calls wait in its queue. */
export class Slow extends TidegateObject {
  constructor(ctx, env) {
    const { storage } = ctx;
    const get = storage.get.bind(storage);
    Object.defineProperty(storage, "get", { value: (...args) => scheduler.wait(300).then(() => get(...args)) });
    super(ctx, env);
  }
}

/** Has no binding to its namespace, as an object of another Worker. */
export class Alone extends TidegateObject {
  constructor(ctx) {
    super(ctx, {});
  }
}

// At global scope, where workerd gives no random numbers, no timers and no clock.
const defined = defineLimits({ global: { kind: "token bucket", rate: 2, period: HOUR, shards: 2 } });
const onBinding = defineLimits(
  { global: { kind: "token bucket", rate: 2, period: 1000 * HOUR } },
  { store: durableObject(bindings.WATCHED), timeout: 60_000 },
);

/** Spent in this isolate; on a clock that advances 1 ms per 50 decisions. */
const leased = (() => {
  let decisions = 0;
  return defineLimits(
    {
      ample: { kind: "token bucket", rate: 100_000, period: 1000 },
      stock: { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 1000 },
    },
    { store: durableObject(bindings.WATCHED, { lease: true }), timeout: 60_000, now: () => 1e12 + decisions++ / 50 },
  );
})();

/** Parallel calls of one request on one object. */
async function burst(namespace, calls) {
  const limits = defineLimits(CONFIGS, { store: durableObject(namespace), timeout: 60_000 });
  const key = `${calls} ${Date.now()} ${stores++}`;
  const answers = await Promise.all(Array.from({ length: calls }, () => limits.limit("hot", { key })));
  return answers.filter(({ ok }) => ok).length;
}

/** A call that waits behind a slow one for longer than its timeout, and what both took. */
async function late(env) {
  const limits = (timeout) => defineLimits(CONFIGS, { store: durableObject(env.SLOW), timeout, log: false });
  const key = `late ${Date.now()}`;
  const first = limits(60_000).limit("hot", { key });
  const second = await limits(100).limit("hot", { key });
  await first;
  const { value } = await limits(60_000).getValue("hot", { key });
  return { degraded: second.degraded, taken: 100 - Math.floor(value) };
}

/** Callers at once on a limit in as many objects as it has shards: they take, and give some of it back. */
async function spread(env, { shards, capacity, callers, binding = "LIMITS" }) {
  const limits = defineLimits(
    { wide: { kind: "token bucket", rate: 1, period: 2 ** 40, capacity, shards } },
    { store: durableObject(env[binding]), timeout: 60_000 },
  );
  const key = `${shards} ${Date.now()} ${stores++}`;
  let out = 0;
  let most = 0;
  let random = shards;
  const below = (n) => {
    random = (random * 48_271) % 0x7fff_ffff;
    return random % n;
  };
  const caller = async () => {
    for (let i = 0; i < 6; i++) {
      const count = below(5) === 0 ? Math.floor(capacity / 3) : 1 + below(4);
      const { ok, cause } = await limits.limit("wide", { key, count });
      if (cause !== undefined) throw cause;
      if (!ok) continue;
      out += count;
      most = Math.max(most, out);
      if (below(3) > 0) continue;
      out -= count;
      await limits.give("wide", { key, count });
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  const { value } = await limits.getValue("wide", { key });
  const rest = await limits.limit("wide", { key, count: Math.max(value - 0.01, 0) });
  const beyond = await limits.limit("wide", { key, count: 0.5 });
  await limits.reset("wide", { key });
  const again = await limits.limit("wide", { key, count: capacity });
  let all;
  try {
    all = await limits.limitAll([{ name: "wide", key }]);
  } catch (error) {
    all = error.message;
  }
  return { out, most, value, rest: rest.ok, beyond: beyond.ok, again: again.ok, all };
}

/** The RPCs that a Worker makes for each call on a limit of several shards, while it is full and when it is empty. */
async function rpcs(namespace, shards) {
  let made = 0;
  const counting = {
    idFromName: (name) => namespace.idFromName(name),
    get: (id) => ({
      handle(request) {
        made++;
        return namespace.get(id).handle(request);
      },
    }),
  };
  const limits = defineLimits(
    { wide: { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: shards, shards } },
    { store: durableObject(counting), timeout: 60_000 },
  );
  const key = `rpcs ${shards} ${Date.now()} ${stores++}`;
  const count = async (call) => {
    made = 0;
    const { ok, cause } = (await call()) ?? {};
    if (cause !== undefined) throw cause;
    return { ok, made };
  };
  return {
    granted: await count(() => limits.limit("wide", { key })),
    rest: await count(() => limits.limit("wide", { key, count: shards - 1 })),
    denied: await count(() => limits.limit("wide", { key })),
    checked: await count(() => limits.check("wide", { key })),
    value: await count(() => limits.getValue("wide", { key })),
    given: await count(() => limits.give("wide", { key, count: 2 })),
    charged: await count(() => limits.charge("wide", { key, count: 1 })),
    reset: await count(() => limits.reset("wide", { key })),
  };
}

async function spend(name, times) {
  let granted = 0;
  for (let i = 0; i < times; i++) {
    const { ok, cause } = await leased.limit(name, { key: "hot" });
    if (cause !== undefined) throw cause;
    if (ok) granted++;
  }
  return granted;
}

async function global() {
  const answers = [];
  for (let i = 0; i < 3; i++) answers.push([defined.limit("global").ok, (await onBinding.limit("global")).ok]);
  return answers;
}

let stores = 0;
/** A store whose objects no other store uses. */
function fresh(namespace, options) {
  const own = `${Date.now()} ${stores++} `;
  const { object = (name, key, shard) => JSON.stringify([name, key ?? null, shard ?? null]) } = options;
  return durableObject(namespace, { object: (...of) => own + object(...of) });
}

/** A KV store with an unused prefix. */
const freshKv = (env) => workersKv(env.QUOTAS, { prefix: `${Date.now()} ${stores++} `, approximate: true });
const coarse = {
  approximate: "KV is eventually consistent",
  refusesShards: "no key is contended for where nothing is exact",
};

const together = { object: () => "one for all" };
const shardsApart = "each shard has a row of its own";
const apart = { refusesLimitAll: "each limit and key has an object of its own" };

/** Every operation, several limits in a call, and numbers of every size: the engine runs all vectors in memory. */
const fewest = Object.fromEntries(
  ["operations.json", "limit-all.json", "precision.json"].map((file) => [file, vectors[file]]),
);

/** @type {Record<string, (env: any) => Promise<unknown>>} */
const SUITES = {
  memory: async () => [...(await inMemory()), ...policies()],
  "an object for each key, which has no binding": (env) => report({ create: () => fresh(env.ALONE, {}), ...apart }),
  // Repeating every history would create thousands of objects, each a file here.
  "an object for each key": (env) => report({ create: () => fresh(env.LIMITS, {}), ...apart }),
  "one object for all": (env) => report({ create: () => fresh(env.LIMITS, together), vectors: few, shardsApart }),
  "classic storage, one object for all": (env) =>
    report({ create: () => fresh(env.CLASSIC, together), vectors: fewest }),
  D1: (env) =>
    report({
      create: () => sqlite(env.DB, { table: `t${Date.now()}_${stores++}` }),
      vectors: fewest,
    }),
  "Workers KV": (env) => report({ create: () => freshKv(env), vectors: fewest, ...coarse }),
};

/** A namespace that records its calls. */
function counted(namespace) {
  const calls = [];
  const log =
    (method) =>
    (...args) => {
      calls.push(method);
      return namespace[method](...args);
    };
  return { calls, get: log("get"), put: log("put"), delete: log("delete") };
}

/** The reads and writes of KV, by an isolate that has a state cached and by one that has just started. */
async function onKv(env) {
  const prefix = `${Date.now()} `;
  const limits = (kv, options) => startedOn(kv, { prefix, ...options });
  const one = counted(env.QUOTAS);
  const first = limits(one);
  const key = "k".repeat(1000);
  const granted = [];
  for (let i = 0; i < 105; i++) granted.push((await first.limit("hot", { key })).ok);
  await first.check("hot", { key });
  const burst = [...one.calls];
  const another = counted(env.QUOTAS);
  const early = await limits(another).check("hot", { key });
  await new Promise((resolve) => setTimeout(resolve, 1100));
  await first.limit("hot", { key });
  const later = await limits(counted(env.QUOTAS)).check("hot", { key });
  const refusal = (body) =>
    body().then(
      () => "granted",
      ({ code, message }) => `${code} ${message}`,
    );
  return {
    granted: granted.filter(Boolean).length,
    burst,
    early: early.remaining,
    later: later.remaining,
    keys: (await env.QUOTAS.list({ prefix })).keys.length,
    approximate: workersKv(env.QUOTAS).approximate,
    all: await refusal(() => limits(env.QUOTAS).limitAll([{ name: "hot" }])),
    reserve: await refusal(() => limits(env.QUOTAS).limit("hot", { reserve: true })),
    both: [
      (await limits(env.QUOTAS, { approximate: true }).limitAll([{ name: "hot" }, { name: "brief" }])).ok,
      (await limits(env.QUOTAS, { approximate: true }).limit("hot", { count: 100, reserve: true })).reserved,
    ],
  };
}

/** Takes five tokens of a key. */
async function burstOnKv(env, key) {
  const limits = startedOn(env.QUOTAS);
  for (let i = 0; i < 5; i++) await limits.limit("hot", { key });
}

const leftInKv = async (env, key) => Math.floor((await startedOn(env.QUOTAS).getValue("hot", { key })).value);

/** Limits as an isolate has them that has just started. */
const startedOn = (kv, options) => defineLimits(CONFIGS, { store: workersKv(kv, options), timeout: 60_000 });

const CONFIGS = {
  hot: { kind: "token bucket", rate: 100, period: 1000 * HOUR },
  brief: { kind: "token bucket", rate: 10, period: 1000 },
};

export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    const query = Object.fromEntries(searchParams);
    const respond = (answer) => Response.json(answer ?? null);
    if (pathname === "/suite") return respond(await SUITES[query.name](env));
    if (pathname === "/lease") return respond(await spend(query.name, Number(query.times)));
    if (pathname === "/spread") return respond(await spread(env, JSON.parse(query.of)));
    if (pathname === "/late") return respond(await late(env));
    if (pathname === "/global") return respond(await global());
    if (pathname === "/shared") return respond(await shared(query));
    if (pathname === "/paced") return respond(await paced(query));
    if (pathname === "/kv") return respond(await onKv(env));
    if (pathname === "/kv-burst") return respond(await burstOnKv(env, query.key));
    if (pathname === "/kv-left") return respond(await leftInKv(env, query.key));
    const namespace = env[query.in ?? "WATCHED"];
    if (pathname === "/rpcs") return respond(await rpcs(namespace, Number(query.shards)));
    if (pathname === "/burst") return respond(await burst(namespace, Number(query.calls)));
    if (pathname === "/limit") {
      const limits = defineLimits(CONFIGS, { store: durableObject(namespace), timeout: 60_000 });
      const { cause, ...decision } = await limits[query.op ?? "limit"](query.name, {
        key: query.key,
        count: Number(query.count ?? 1),
      });
      return respond({ ...decision, cause: cause?.message });
    }
    if (pathname === "/all") {
      const limits = defineLimits(CONFIGS, { store: durableObject(namespace), timeout: 60_000 });
      try {
        return respond(
          await limits.limitAll([
            { name: "hot", key: "a" },
            { name: "brief", key: "a" },
          ]),
        );
      } catch (error) {
        return respond({ code: error.code, message: error.message });
      }
    }
    const stub = namespace.getByName(query.object);
    try {
      return respond(await stub[pathname.slice(1)](...JSON.parse(query.args ?? "[]")));
    } catch (error) {
      return respond({ thrown: error.message });
    }
  },
};
