// The contenders: each gets its own client and makes one decision (or plain command) for a key.
import { Redis } from "ioredis";
import { RedisStore as RateLimitRedis } from "rate-limit-redis";
import { RateLimiterRedis } from "rate-limiter-flexible";
import { createClient } from "redis";
import { defineLimits } from "../../../npm/tidegate/dist/index.js";
import { redis } from "../../../npm/tidegate/dist/stores/redis.js";

/** So many that nothing is denied, except in cases about denials; ours refill so slowly that states stay. */
const RATE = 1_000_000_000;
export const HOUR = 3_600_000;
export const OURS = { rate: 1, period: HOUR, capacity: RATE };

const ioredis = (port) => {
  const client = new Redis({ host: "127.0.0.1", port });
  return { client, close: () => client.disconnect() };
};

const nodeRedis = async (port) => {
  const client = createClient({ url: `redis://127.0.0.1:${port}` });
  await client.connect();
  return { client, close: () => client.destroy() };
};

const limiter = (client, config, options) => {
  const limits = defineLimits(
    { api: { kind: "token bucket", ...config } },
    { store: redis(client, options), timeout: 5000 },
  );
  return (key) => limits.limit("api", { key });
};

const flexible = (client, extra = {}) => {
  const limiter = new RateLimiterRedis({ storeClient: client, points: RATE, duration: 3600, ...extra });
  return (key) => limiter.consume(key);
};

const rateLimitRedis = async (sendCommand) => {
  const store = new RateLimitRedis({ sendCommand, prefix: "rl:" });
  store.init({ windowMs: HOUR });
  await store.increment("warm");
  return (key) => store.increment(key);
};

export const contenders = {
  "GET (ioredis)": async (port) => {
    const { client, close } = ioredis(port);
    return { run: (key) => client.get(key), close };
  },
  "tidegate (ioredis)": async (port) => {
    const { client, close } = ioredis(port);
    return { run: limiter(client, OURS), close };
  },
  "rate-limiter-flexible (ioredis)": async (port) => {
    const { client, close } = ioredis(port);
    return { run: flexible(client), close };
  },
  "rate-limit-redis (ioredis)": async (port) => {
    const { client, close } = ioredis(port);
    return { run: await rateLimitRedis((command, ...args) => client.call(command, ...args)), close };
  },
  "GET (node-redis)": async (port) => {
    const { client, close } = await nodeRedis(port);
    return { run: (key) => client.get(key), close };
  },
  "tidegate (node-redis)": async (port) => {
    const { client, close } = await nodeRedis(port);
    return { run: limiter(client, OURS), close };
  },
  "rate-limiter-flexible (node-redis)": async (port) => {
    const { client, close } = await nodeRedis(port);
    return { run: flexible(client, { useRedisPackage: true }), close };
  },
  "rate-limit-redis (node-redis)": async (port) => {
    const { client, close } = await nodeRedis(port);
    return { run: await rateLimitRedis((...args) => client.sendCommand(args)), close };
  },
};

/** The least that a script does which decides by the server's clock: it reads the clock and a key, and writes the key. */
const LEAST = `local clock = redis.call('TIME')
local held = redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], '0123456789abcdef', 'PXAT', ARGV[1])
return held`;
export const least = {
  "TIME, GET and SET in a script": async (port) => {
    const { client, close } = ioredis(port);
    const sha = await client.script("LOAD", LEAST);
    const at = `${Date.now() + HOUR}`;
    return { run: (key) => client.evalsha(sha, 1, `least:${key}`, at), close };
  },
};

const LEAST_OF_MANY = `local clock = redis.call('TIME')
for _, key in ipairs(KEYS) do
  local held = redis.call('GET', key)
  redis.call('SET', key, '0123456789abcdef', 'PXAT', ARGV[1])
end
return #KEYS`;
/** As many as one call of our script takes. */
const KEYS_PER_CALL = 64;

/** The same for many callers: the keys of one turn go out together, as ours do. */
export const leastOfMany = {
  "TIME, and GET and SET of 64 keys, in a script": async (port) => {
    const { client, close } = ioredis(port);
    const sha = await client.script("LOAD", LEAST_OF_MANY);
    const at = `${Date.now() + HOUR}`;
    const send = (keys) => client.evalsha(sha, keys.length, ...keys, at);
    let open;
    let answer;
    const run = (key) => {
      if (open === undefined || open.length === KEYS_PER_CALL) {
        const keys = [];
        open = keys;
        answer = new Promise((resolve, reject) => {
          process.nextTick(() => {
            if (open === keys) open = undefined;
            send(keys).then(resolve, reject);
          });
        });
      }
      open.push(`least:${key}`);
      return answer;
    };
    return { run, close };
  },
};

/** One key that is out of tokens, called again and again. */
export const denied = {
  "tidegate (ioredis)": async (port) => {
    const { client, close } = ioredis(port);
    const run = limiter(client, { rate: 1, period: HOUR });
    await run("hot");
    return { run: () => run("hot"), close };
  },
  "tidegate, denials not remembered": async (port) => {
    const { client, close } = ioredis(port);
    const run = limiter(client, { rate: 1, period: HOUR }, { prefix: "uncached:", rememberDenials: 0 });
    await run("hot");
    return { run: () => run("hot"), close };
  },
  "rate-limiter-flexible (ioredis)": async (port) => {
    const { client, close } = ioredis(port);
    const limiter = new RateLimiterRedis({
      storeClient: client,
      points: 1,
      duration: 3600,
      inMemoryBlockOnConsumed: 2,
    });
    const run = (key) => limiter.consume(key).catch((refused) => refused);
    await run("hot-flexible");
    return { run: () => run("hot-flexible"), close };
  },
};
