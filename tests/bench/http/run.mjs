// node run.mjs [--quick] [--rounds 9] [--json figures.json]
//
// A process for each server and round: two processes of the same server may differ by as much as a limiter costs.
import { fork } from "node:child_process";
import { once } from "node:events";
import autocannon from "autocannon";
import { versionOf } from "../installed.mjs";
import { figure, median, options, publish, shuffled } from "../tables.mjs";
import { servers } from "./servers.mjs";

const given = options(9);
const { rounds } = given;
const amount = given.quick ? 500 : 20_000;

/** CPU µs a request of a server in a process of its own, after as many requests that are not counted. */
async function measured(framework, contender) {
  const child = fork(new URL("server.mjs", import.meta.url), [framework, contender]);
  const [{ port }] = await once(child, "message");
  const used = async () => {
    child.send("how much");
    const [{ micros }] = await once(child, "message");
    return micros;
  };
  const load = async () => {
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
    return served;
  };
  await load();
  const before = await used();
  const served = await load();
  const micros = ((await used()) - before) / served;
  child.disconnect();
  await once(child, "exit");
  return micros;
}

const tables = [];
for (const [framework, contenders] of Object.entries(servers)) {
  const names = Object.keys(contenders);
  const micros = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const name of shuffled(names)) micros[name].push(await measured(framework, name));
  }
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
      ...(name === bare
        ? ["", ""]
        : [figure(median(costs[name]), 1), figure(median(costs[name]) / median(costs.tidegate), 2)]),
    ]),
  });
}
const peers = ["express", "express-rate-limit", "fastify", "@fastify/rate-limit"];
publish(given, tables, Object.fromEntries(peers.map((name) => [name, versionOf(name)])));
