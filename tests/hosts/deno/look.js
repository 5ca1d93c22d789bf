// What a denial, a check, a corrupt entry, too many shards and the end do to a database.
import { defineLimits, HOUR } from "tidegate";
import { denoKv } from "tidegate/deno-kv";

const kv = await Deno.openKv(Deno.args[0]);
const configs = {
  two: { kind: "token bucket", rate: 2, period: HOUR },
  many: { kind: "token bucket", rate: 1000, period: HOUR, shards: 101 },
  part: { kind: "token bucket", rate: 1000, period: HOUR, shards: 60 },
};
const limits = defineLimits(configs, { store: denoKv(kv), timeout: 60_000 });
const stamp = async () => (await kv.get(["tidegate", "two:a"])).versionstamp;
await limits.check("two", { key: "a" });
const untouched = await stamp();
await limits.limit("two", { key: "a", count: 1.5 });
const taken = await stamp();
const denied = await limits.limit("two", { key: "a" });
await limits.check("two", { key: "a", count: 0.25 });
await limits.limit("two", { key: "a", count: 0 });
const after = await stamp();
const refusal = (promise) =>
  promise.then(
    () => "granted",
    ({ code, message }) => `${code} ${message}`,
  );
const tooMany = await refusal(limits.limit("many"));
const tooManyInAll = await refusal(limits.limitAll([{ name: "part" }, { name: "part", key: "b" }]));
await kv.set(["tidegate", "two:broken"], new Uint8Array(15));
const broken = await limits.limit("two", { key: "broken" });

/** Closes the database while its first read is under way. */
const closing = {
  get(key) {
    const found = kv.get(key);
    closing.get = (key) => kv.get(key);
    kv.close();
    return found;
  },
  atomic: () => kv.atomic(),
};
const atTheEnd = defineLimits(configs, { store: denoKv(closing), timeout: 60_000, log: false });
const closed = [];
for (let i = 0; i < 2; i++) closed.push((await atTheEnd.limit("two", { key: "a" })).cause?.message);
console.log(
  JSON.stringify({
    untouched,
    unchanged: taken === after,
    denied: denied.ok,
    tooMany,
    tooManyInAll,
    broken: [broken.ok, `${broken.cause?.code} ${broken.cause?.message}`],
    closed,
  }),
);
