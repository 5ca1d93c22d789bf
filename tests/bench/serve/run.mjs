// node run.mjs [--quick] [--rounds 9] [--json figures.json]
//
// The built service with its store in memory, and a bare handler of the same server, each in a process of its own. In turns,
// autocannon loads them for their CPU time, and a lone caller measures how long one request takes.
import { fork } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
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

/** CPU µs of a request, under load. */
async function load(url, pid, connections) {
  const before = cpuOf(pid);
  const options = { url: `${url}/v1/decide`, method: "POST", headers: HEADERS, body: BODY, connections, amount };
  const { "2xx": served, non2xx, errors } = await autocannon(options);
  if (non2xx + errors > 0 || served < amount - 200) throw new Error(`${served} of ${amount} were served`);
  return (cpuOf(pid) - before) / served;
}

/** The median of µs from a request to its answer, one request after another on one connection. */
async function alone(url) {
  const { hostname, port } = new URL(url);
  const request = [
    "POST /v1/decide HTTP/1.1",
    `Host: ${hostname}:${port}`,
    ...Object.entries(HEADERS).map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${BODY.length}`,
    "",
    BODY,
  ].join("\r\n");
  const socket = connect(Number(port), hostname).setNoDelay(true).setEncoding("latin1");
  await once(socket, "connect");
  const micros = [];
  for (let i = 0; i < amount / 10; i++) {
    const start = performance.now();
    socket.write(request);
    // The answers are short, so a piece is an answer.
    const [answer] = await once(socket, "data");
    micros.push((performance.now() - start) * 1000);
    if (!answer.startsWith("HTTP/1.1 200") || !answer.endsWith("}")) throw new Error(`the answer was ${answer}`);
  }
  socket.destroy();
  return median(micros);
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
    const [url, pid] = servers[name];
    micros[name].push(await load(url, pid, 20));
    latencies[name].push(await alone(url));
  }
}
bare.disconnect();
service.kill();
rmSync(folder, { recursive: true, force: true });

const table = {
  title: `POST /v1/decide, in memory: ${amount} requests a round on 20 connections, and ${amount / 10} one after another`,
  head: ["", "CPU µs a request", "a second on one core", "× bare", "µs of a lone request", "× bare"],
  rows: names.map((name) => [
    name,
    figure(median(micros[name]), 1),
    figure(1e6 / median(micros[name])),
    ratio(micros[name], micros[base]),
    figure(median(latencies[name])),
    ratio(latencies[name], latencies[base]),
  ]),
};
publish(given, [table]);
