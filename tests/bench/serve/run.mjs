// node run.mjs [--quick] [--rounds 9] [--json figures.json]
//
// The built service with its store in memory, and a bare handler of the same server, each in a process of its own; autocannon
// loads them in turns.
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import autocannon from "autocannon";
import { figure, median, options, publish, ratio } from "../tables.mjs";

const given = options(9);
const { rounds } = given;
const amount = given.quick ? 500 : 20_000;
const BODY = JSON.stringify({ name: "api", key: "203.0.113.7" });
const HEADERS = { "content-type": "application/json" };

const folder = mkdtempSync(join(tmpdir(), "tidegate-bench-serve-"));
const config = { rate: 1e9, period: "1m", capacity: 1e9 };
const rule = { name: "api", limit_keys: ["ip:address"], algorithm: "token_bucket", algorithm_config: config };
writeFileSync(join(folder, "policies.json"), JSON.stringify({ rules: [rule] }));

/** The CPU time of a process so far, of user code and of the kernel, in µs: what one core has to do. */
function cpuOf(pid) {
  // Fields 14 and 15, in ticks of 10 ms, after the name in parentheses.
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

async function load(url, pid, connections) {
  const before = cpuOf(pid);
  const options = { url: `${url}/v1/decide`, method: "POST", headers: HEADERS, body: BODY, connections, amount };
  const { "2xx": served, non2xx, errors, latency } = await autocannon(options);
  if (non2xx + errors > 0 || served < amount - 200) throw new Error(`${served} of ${amount} were served`);
  return { micros: (cpuOf(pid) - before) / served, latency: latency.average };
}

const bin = fileURLToPath(new URL("../../../npm/tidegate-serve/dist/bin.js", import.meta.url));
const service = fork(bin, ["policies.json", "--port", "0"], {
  cwd: folder,
  stdio: ["ignore", "pipe", "inherit", "ipc"],
});
const [line] = await once(service.stdout, "data");
const { url } = JSON.parse(line);
const answer = await (await fetch(`${url}/v1/decide`, { method: "POST", headers: HEADERS, body: BODY })).text();
const bare = fork(fileURLToPath(new URL("bare.mjs", import.meta.url)), [answer]);
const [{ port }] = await once(bare, "message");

const servers = {
  "a bare handler": [`http://127.0.0.1:${port}`, bare.pid],
  "tidegate-serve": [url, service.pid],
};
const names = Object.keys(servers);
const [base] = names;
const micros = Object.fromEntries(names.map((name) => [name, []]));
const latencies = Object.fromEntries(names.map((name) => [name, []]));
for (const name of names) await load(...servers[name], 20); // warm
for (let round = 0; round < rounds; round++) {
  for (const name of names) {
    const { micros: cpu, latency } = await load(...servers[name], 20);
    micros[name].push(cpu);
    latencies[name].push(latency);
  }
}
bare.disconnect();
service.kill();
rmSync(folder, { recursive: true, force: true });

const table = {
  title: `POST /v1/decide on 20 connections, in memory, ${amount} requests a round`,
  head: ["", "CPU µs a request", "a second on one core", "× bare", "latency, ms", "× bare"],
  rows: names.map((name) => [
    name,
    figure(median(micros[name]), 1),
    figure(1e6 / median(micros[name])),
    ratio(micros[name], micros[base]),
    figure(median(latencies[name]), 2),
    ratio(latencies[name], latencies[base]),
  ]),
};
publish(given, [table]);
