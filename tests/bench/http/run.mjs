// node run.mjs [--quick] [--rounds 9] [--json figures.json]
//
// A process for each server; autocannon loads them in turns, and the CPU time of each outside the kernel is measured.
import { fork } from "node:child_process";
import { once } from "node:events";
import autocannon from "autocannon";
import { versionOf } from "../installed.mjs";
import { figure, median, options, ratio, publish, shuffled } from "../tables.mjs";
import { servers } from "./servers.mjs";

const given = options(9);
const { rounds } = given;
const amount = given.quick ? 500 : 20_000;

async function start(framework, contender) {
  const child = fork(new URL("server.mjs", import.meta.url), [framework, contender]);
  const [{ port }] = await once(child, "message");
  const used = async () => {
    child.send("how much");
    const [{ micros }] = await once(child, "message");
    return micros;
  };
  const load = async () => {
    const before = await used();
    const {
      non2xx,
      errors,
      "2xx": served,
    } = await autocannon({
      url: `http://127.0.0.1:${port}`,
      connections: 20,
      pipelining: 10,
      amount,
    });
    // autocannon does not count requests in flight when it stops.
    if (non2xx + errors > 0 || served < amount - 200)
      throw new Error(`${contender}: ${served} of ${amount} were served`);
    return ((await used()) - before) / served;
  };
  return { load, close: () => child.disconnect() };
}

const tables = [];
for (const [framework, contenders] of Object.entries(servers)) {
  const names = Object.keys(contenders);
  const open = {};
  for (const name of names) open[name] = await start(framework, name);
  const micros = Object.fromEntries(names.map((name) => [name, []]));
  for (const name of names) await open[name].load(); // warm
  for (let round = 0; round < rounds; round++) {
    for (const name of shuffled(names)) micros[name].push(await open[name].load());
  }
  for (const { close } of Object.values(open)) close();
  const [bare, ...limited] = names;
  const costs = Object.fromEntries(
    limited.map((name) => [name, micros[name].map((of, round) => of - micros[bare][round])]),
  );
  tables.push({
    title: `${framework}, ${amount} requests a round`,
    head: ["", "CPU µs a request", "of it the limiter", "× ours"],
    rows: names.map((name) => [
      name,
      figure(median(micros[name]), 1),
      ...(name === bare ? ["", ""] : [figure(median(costs[name]), 1), ratio(costs[name], costs.tidegate)]),
    ]),
  });
}
const peers = ["express", "express-rate-limit", "fastify", "@fastify/rate-limit"];
publish(given, tables, Object.fromEntries(peers.map((name) => [name, versionOf(name)])));
