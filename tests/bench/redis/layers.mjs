// Where the time of one call on ioredis goes: the same call, each time with one layer more.
import { readFileSync } from "node:fs";
import { Redis } from "ioredis";
import { defineLimits } from "../../../npm/tidegate/dist/index.js";
import { redis } from "../../../npm/tidegate/dist/stores/redis.js";
import { Limit } from "../../../npm/tidegate/dist/stores.js";
import { HOUR, least, OURS } from "./contenders.mjs";

const script = readFileSync(new URL("../../../npm/tidegate/dist/stores/redis/tidegate.lua", import.meta.url), "utf8");
const args = () => ["bytes", `${Date.now() + HOUR}`, "1", `${OURS.rate}`, `${OURS.period}`, `${OURS.capacity}`];

/** One caller with a connection of its own, which runs a script by its digest. */
const bare = (lua, given) => async (port) => {
  const client = new Redis({ host: "127.0.0.1", port });
  const digest = await client.script("LOAD", lua);
  const rest = given();
  return { run: (key) => client.evalshaBuffer(digest, 1, `bare:${key}`, ...rest), close: () => client.disconnect() };
};

export const layers = {
  "GET (ioredis)": (port) => {
    const client = new Redis({ host: "127.0.0.1", port });
    return { run: (key) => client.get(key), close: () => client.disconnect() };
  },
  "a script that does nothing": bare("return 1", () => []),
  "the same, with our arguments": bare("return 1", args),
  ...least,
  "our script, by the client": bare(script, args),
  "the store": (port) => {
    const client = new Redis({ host: "127.0.0.1", port });
    const store = redis(client);
    const limit = new Limit("api", { kind: "token bucket", ...OURS });
    const run = (key) => store.decide({ op: "take", limit, key, count: 1, reserve: false }, undefined);
    return { run, close: () => client.disconnect() };
  },
  "the limiter": (port) => {
    const client = new Redis({ host: "127.0.0.1", port });
    const limits = defineLimits({ api: { kind: "token bucket", ...OURS } }, { store: redis(client), timeout: 5000 });
    return { run: (key) => limits.limit("api", { key }), close: () => client.disconnect() };
  },
};
