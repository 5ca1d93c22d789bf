// node run.mjs [--quick] [--rounds 5]
//
// One hot key on a loopback Redis, with leases and without, taking turns: decisions per second, the fraction that reached
// the server, and the fraction of the available tokens that was granted.
import { Redis } from "ioredis";
import { defineLimits, SECOND } from "tidegate";
import { redis } from "tidegate/redis";
import { startServer } from "../redis/server.mjs";
import { figure, median, options, ratio, publish } from "../tables.mjs";

const given = options(5);
const { rounds } = given;
const ms = given.quick ? 100 : 700;

/** Tokens per second: more than are requested, and far fewer. */
const LIMITS = {
  ample: { kind: "token bucket", rate: 50_000_000, period: SECOND },
  scarce: { kind: "token bucket", rate: 100_000, period: SECOND, capacity: 10_000 },
};
const server = await startServer();
const open = () => new Redis({ host: "127.0.0.1", port: server.port });
const probe = open();

/** So many nodes in this one process, each with its own connection and leases. */
async function measure(limit, { lease, nodes, callers }) {
  await probe.flushall();
  await probe.config("RESETSTAT");
  const clients = Array.from({ length: nodes }, open);
  const limiters = clients.map((client) => defineLimits(LIMITS, { store: redis(client, { lease }), timeout: 10_000 }));
  let [called, granted, stop] = [0, 0, false];
  const caller = async (limits) => {
    // A caller that never waits for the server would block the event loop.
    for (let i = 1; !stop; i++) {
      const { ok } = await limits.limit(limit, { key: "hot" });
      called++;
      if (ok) granted++;
      if (i % 100 === 0) await new Promise(setImmediate);
    }
  };
  const began = performance.now();
  setTimeout(() => {
    stop = true;
  }, ms);
  await Promise.all(limiters.flatMap((limits) => Array.from({ length: callers / nodes }, () => caller(limits))));
  const took = performance.now() - began;
  const stats = await probe.info("commandstats");
  const reached = Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  await Promise.all(limiters.map((limits) => limits.release()));
  for (const client of clients) client.disconnect();
  const { rate, period, capacity = rate } = LIMITS[limit];
  return {
    perSecond: (called * 1000) / took,
    reached: reached / called,
    used: granted / (capacity + (rate * took) / period),
  };
}

const rows = [];
for (const limit of ["ample", "scarce"]) {
  for (const nodes of [1, 4]) {
    for (const callers of [nodes, 256]) {
      const figures = { plain: [], leased: [] };
      for (let round = 0; round < rounds; round++) {
        figures.plain.push(await measure(limit, { lease: false, nodes, callers }));
        figures.leased.push(await measure(limit, { lease: true, nodes, callers }));
      }
      const all = (kind, what) => figures[kind].map((one) => one[what]);
      const of = (kind, what) => median(all(kind, what));
      rows.push([
        `${limit}: ${nodes} node${nodes === 1 ? "" : "s"}, ${callers} caller${callers === 1 ? "" : "s"}`,
        figure(of("plain", "perSecond")),
        figure(of("leased", "perSecond")),
        ratio(all("leased", "perSecond"), all("plain", "perSecond")),
        `${figure(of("leased", "reached") * 100, 3)} %`,
        limit === "scarce" ? `${figure(of("leased", "used") * 100, 1)} %` : "",
      ]);
    }
  }
}
const head = ["", "decisions a second without", "leased", "ratio", "reach Redis", "granted of what there was"];
publish(given, [{ title: "One hot key on Redis, with leases and without", head, rows }]);
await probe.quit();
server.stop();
