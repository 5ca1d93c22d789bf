// Opens the database and says so, waits for a line, then takes single tokens, some concurrently; prints how many it got.
import { defineLimits, HOUR } from "tidegate";
import { denoKv } from "tidegate/deno-kv";

const [path, calls, kind] = Deno.args;
const kv = await Deno.openKv(path);
console.log("open");
await Deno.stdin.read(new Uint8Array(1));
const limits = defineLimits(
  {
    hot: { kind: "token bucket", rate: 100, period: 1000 * HOUR },
    also: { kind: "fixed window", rate: 60, period: 1000 * HOUR, start: 0 },
  },
  { store: denoKv(kv), timeout: 60_000 },
);
const take = () => (kind === "all" ? limits.limitAll([{ name: "hot" }, { name: "also" }]) : limits.limit("hot"));
const answers = await Promise.all(Array.from({ length: Number(calls) }, take));
const failed = answers.filter(({ degraded }) => degraded);
if (failed.length > 0) throw failed[0].cause;
console.log(
  JSON.stringify({ granted: answers.filter(({ ok }) => ok).length, left: (await limits.getValue("hot")).value }),
);
kv.close();
