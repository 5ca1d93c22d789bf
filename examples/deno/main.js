// Limits in Deno KV, for all processes on one database (PORT and DATABASE choose where):
//   deno run --unstable-kv --allow-net --allow-env --allow-read --allow-write main.js
import { defineLimits, SECOND } from "tidegate";
import { denoKv } from "tidegate/deno-kv";
import { rateLimit } from "tidegate/fetch";

const kv = await Deno.openKv(Deno.env.get("DATABASE"));
const limits = defineLimits(
  { api: { kind: "token bucket", rate: 1, period: 3 * SECOND, capacity: 3 } },
  { store: denoKv(kv), timeout: 2 * SECOND },
);

const handler = rateLimit(limits, { name: "api" }, () => new Response("hello\n"));
Deno.serve({ port: Number(Deno.env.get("PORT") ?? 8000), hostname: "127.0.0.1" }, handler);
