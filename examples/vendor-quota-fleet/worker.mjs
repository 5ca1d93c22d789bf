// One worker of the fleet: each of its jobs is a request to the vendor. Workers share state only through Redis.
import { Redis } from "ioredis";
import { defineLimits } from "tidegate";
import { createFetch } from "tidegate/client";
import { redis } from "tidegate/redis";
import { policy } from "./quota.mjs";

const { REDIS_URL, VENDOR_URL, JOBS = "36", NAME = "worker" } = process.env;

const client = new Redis(REDIS_URL);
const limiter = defineLimits({ vendor: policy }, { store: redis(client), timeout: 10_000 });
const fetch = createFetch({ limit: { limiter, name: "vendor" } });

const statuses = await Promise.all(
  Array.from(
    { length: Number(JOBS) },
    async (_, job) => (await fetch(`${VENDOR_URL}/${encodeURIComponent(NAME)}/${job}`)).status,
  ),
);
console.log(`${NAME}: ${statuses.filter((status) => status === 200).length} of ${statuses.length} jobs done`);
client.disconnect();
