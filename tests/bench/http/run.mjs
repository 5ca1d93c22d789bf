// node run.mjs [--quick] [--rounds 25] [--json figures.json]
//
// A process for each framework, as the compiler learns from all that a process does. In it the contenders take turns.
import { fork } from "node:child_process";
import { once } from "node:events";
import { versionOf } from "../installed.mjs";
import { figure, median, options, publish } from "../tables.mjs";

const given = options(25);
const amount = given.quick ? 500 : 20_000;

const tables = [];
for (const framework of ["express", "fastify"]) {
  const child = fork(new URL("framework.mjs", import.meta.url), [framework, `${given.rounds}`, `${amount}`]);
  const [micros] = await once(child, "message");
  const [bare, ...limited] = Object.keys(micros);
  const cost = (name) => median(micros[name].map((of, round) => of - micros[bare][round]));
  tables.push({
    title: `${framework}, ${amount} requests a round`,
    head: ["", "CPU µs a request", "of it the limiter", "× ours"],
    rows: [
      [bare, figure(median(micros[bare]), 1), "", ""],
      ...limited.map((name) => [
        name,
        figure(median(micros[name]), 1),
        figure(cost(name), 1),
        figure(cost(name) / cost("tidegate"), 2),
      ]),
    ],
  });
}
const peers = ["express", "express-rate-limit", "fastify", "@fastify/rate-limit"];
publish(given, tables, Object.fromEntries(peers.map((name) => [name, versionOf(name)])));
