// The contenders: each runs for so many ms and returns its number of decisions.
import { Redis } from "ioredis";
import { RateLimiterCluster, RateLimiterClusterMaster } from "rate-limiter-flexible";
import { defineLimits } from "../../../npm/tidegate/dist/index.js";
import { file } from "../../../npm/tidegate/dist/stores/file.js";
import { redis } from "../../../npm/tidegate/dist/stores/redis.js";

/** So many that nothing is denied, with a refill so slow that states stay. */
const POINTS = 1_000_000_000;
const HOUR = 3_600_000;
const limits = { api: { kind: "token bucket", rate: 1_000_000, period: HOUR, capacity: POINTS } };
const denied = { api: { kind: "token bucket", rate: 1, period: 1000 * HOUR } };
const keys = Array.from({ length: 10_000 }, (_, i) => `user:${i}`);

/** A caller on synchronous results. */
function atOnce(call) {
  return (ms) => {
    const end = performance.now() + ms;
    let done = 0;
    while (performance.now() < end) for (let i = 0; i < 16; i++) call(keys[(done++ * 7919) % keys.length]);
    return done;
  };
}

/** So many callers, each calling again as soon as it has its result. */
function later(call, callers) {
  return async (ms) => {
    const end = performance.now() + ms;
    let done = 0;
    const caller = async (at) => {
      for (let i = at; performance.now() < end; i += 7919) {
        await call(keys[i % keys.length]);
        done++;
      }
    };
    await Promise.all(Array.from({ length: callers }, (_, i) => caller(i * 39)));
    return done;
  };
}

function inFolder({ folder }, configs = limits, options = {}) {
  const store = file(folder, options);
  const limiter = defineLimits(configs, { store });
  return { limiter, close: () => store.close() };
}

/** One process. */
export const alone = {
  "tidegate/file": (at) => {
    const { limiter, close } = inFolder(at);
    return { run: atOnce((key) => limiter.limit("api", { key })), close };
  },
  "tidegate/file, denied": (at) => {
    const { limiter, close } = inFolder(at, denied);
    return { run: atOnce((key) => limiter.limit("api", { key })), close };
  },
  "tidegate/file, limitMany of 64": (at) => {
    const { limiter, close } = inFolder(at);
    const batches = Array.from({ length: 156 }, (_, i) => keys.slice(i * 64, i * 64 + 64));
    const run = (ms) => {
      const end = performance.now() + ms;
      let done = 0;
      while (performance.now() < end) done += limiter.limitMany("api", batches[(done / 64) % 156]).length;
      return done;
    };
    return { run, close };
  },
  'tidegate/file, sync: "always"': (at) => {
    const { limiter, close } = inFolder(at, limits, { sync: "always" });
    return { run: atOnce((key) => limiter.limit("api", { key })), close };
  },
  "tidegate/redis, one caller": ({ port }) => {
    const client = new Redis({ host: "127.0.0.1", port });
    const limiter = defineLimits(limits, { store: redis(client), timeout: 5000 });
    return { run: later((key) => limiter.limit("api", { key }), 1), close: () => client.disconnect() };
  },
};

function flexible(callers) {
  return {
    primary: () => void new RateLimiterClusterMaster(),
    worker: () => {
      const limiter = new RateLimiterCluster({ keyPrefix: "bench", points: POINTS, duration: 3600, timeoutMs: 5000 });
      return later((key) => limiter.consume(key), callers);
    },
  };
}

/** Each worker of a cluster. */
export const inCluster = {
  "tidegate/file": {
    primary: () => {},
    worker: (at) => {
      const { limiter } = inFolder(at);
      return atOnce((key) => limiter.limit("api", { key }));
    },
  },
  "rate-limiter-flexible, one caller each": flexible(1),
  "rate-limiter-flexible, 256 callers each": flexible(256),
};
