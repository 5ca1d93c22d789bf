// node run.mjs [--quick] [--rounds 9] [--json figures.json]
//
// A process for each server; autocannon loads them in turns, and the CPU time that each used for its requests, outside the kernel, is read.
import { fork } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import autocannon from "autocannon";
import { servers } from "./servers.mjs";

const { values } = parseArgs({
  options: { quick: { type: "boolean" }, rounds: { type: "string" }, json: { type: "string" } },
});
const rounds = Number(values.rounds ?? (values.quick ? 1 : 9));
const amount = values.quick ? 500 : 20_000;
const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];

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
    // What is in flight when it has enough, it does not count.
    if (non2xx + errors > 0 || served < amount - 200)
      throw new Error(`${contender}: ${served} of ${amount} were served`);
    return ((await used()) - before) / served;
  };
  return { load, close: () => child.disconnect() };
}

const figures = {};
for (const [framework, contenders] of Object.entries(servers)) {
  const names = Object.keys(contenders);
  const open = {};
  for (const name of names) open[name] = await start(framework, name);
  const micros = Object.fromEntries(names.map((name) => [name, []]));
  for (const name of names) await open[name].load(); // warm
  for (let round = 0; round < rounds; round++) {
    for (const name of names) micros[name].push(await open[name].load());
  }
  for (const { close } of Object.values(open)) close();
  const [bare, ...limited] = names;
  const cost = (name, round) => micros[name][round] - micros[bare][round];
  figures[framework] = names.map((name) => ({
    server: name,
    "CPU µs a request": Number(median(micros[name]).toFixed(2)),
    "of it the limiter": limited.includes(name)
      ? Number(median(micros[name].map((_, i) => cost(name, i))).toFixed(2))
      : 0,
    "to ours": limited.includes(name)
      ? Number(
          (
            median(micros[name].map((_, i) => cost(name, i))) /
            median(micros.tidegate.map((_, i) => cost("tidegate", i)))
          ).toFixed(2),
        )
      : undefined,
  }));
  console.log(
    `\n${framework}, ${amount} requests a round, medians of ${rounds} interleaved round${rounds === 1 ? "" : "s"}`,
  );
  console.table(figures[framework]);
}
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(figures, undefined, 2)}\n`);
