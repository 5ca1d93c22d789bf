import { spawn, spawnSync, type SpawnSyncReturns } from "node:child_process";
import { once } from "node:events";
import { cpSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { packageSuite } from "./package-suite.ts";
import { forTests, install, output, root } from "./installed.ts";

interface Report {
  read: { requests: number; bad: number; outOfOrder: number };
  granted: number;
  denied: number;
  tokensGranted: number;
  never: number;
  waits?: { max: number };
  limits: { worst: { key: string; denied: number; atMost: number; longestWait: number }[]; smallestCapacity: number }[];
}

const user = forTests(install());
const bin = join(user.folder, "node_modules/tidegate/dist/cli/bin.js");
const tidegate = (args: string[], input?: string | Buffer): SpawnSyncReturns<string> =>
  spawnSync(process.execPath, [bin, ...args], { cwd: user.folder, encoding: "utf8", ...(input ? { input } : {}) });
/** The result of `tidegate replay` before the package was installed. */
const without = tidegate(["replay", "access.log", "--limit", "rate=1 period=1s"]);
user.add(user.replay.tarball);
const manifest = user.manifest("tidegate-replay");

describe("the tarball of tidegate-replay", () => {
  packageSuite(user.replay, manifest, {
    others: ["dist/generated/replay_bg.wasm"],
    contains: ["dist/index.d.ts", "dist/cli.d.ts", "dist/generated/replay.d.ts"],
    linked: ["plotters", "jiff", "serde-wasm-bindgen", "hdrhistogram"],
  });

  test("has no module that its programs do not use", () => {
    const modules = ["bin", "cli", "generated/replay", "help", "index", "log", "module", "options", "spool"];
    const code = user.replay.packed.files.map(({ path }) => path).filter((path) => path.endsWith(".js"));
    expect(code.sort()).toEqual(modules.map((name) => `dist/${name}.js`));
  });

  test("has no dependency", () => {
    for (const field of ["dependencies", "peerDependencies"]) expect(manifest[field], field).toBeUndefined();
    expect(manifest["engines"]).toEqual({ node: ">=20.19" });
  });

  test("is a library for `require` and `import`, and a program", async () => {
    const { replay } = createRequire(join(user.folder, "package.json"))("tidegate-replay") as {
      replay(files: string[], options: object): Promise<{ report: Report }>;
    };
    const log = join(root, "tests/packaging/access.log");
    const { report } = await replay([log], { limits: ["rate=10 period=1m capacity=20"] });
    expect([report.granted, report.denied]).toEqual([72, 8]);
    const program = join(
      user.folder,
      "node_modules/tidegate-replay",
      (manifest["bin"] as Record<string, string>)["tidegate-replay"] as string,
    );
    const run = (...args: string[]) => spawnSync(process.execPath, [program, ...args], { encoding: "utf8" });
    const { status, stdout, stderr } = run(log, "--limit", "rate=10 period=1m capacity=20", "--budget", "1%");
    expect([status, stderr]).toEqual([1, ""]);
    expect(stdout).toMatch(/^80 requests in 1\.58 min/);
    const missing = run("missing.log", "--limit", "rate=1 period=1s");
    expect([missing.status, missing.stderr]).toEqual([
      2,
      expect.stringMatching(/^tidegate-replay: missing\.log cannot be read: /),
    ]);
  });
});

function report(args: string[], input?: string | Buffer): Report {
  const { status, stdout, stderr } = tidegate(["replay", "--json", ...args], input);
  expect([status, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout) as Report;
}

/** Numbers in [0, 1), the same in every run. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

type Request = { now: number; key: string; count: number };

/** Bursts and pauses of a few clients; the clock steps back now and then, once by hours. */
function traffic(seed: number): Request[] {
  const next = numbers(seed);
  let now = 1_700_000_000_000;
  return Array.from({ length: 4000 }, (_, i) => {
    now += next() < 0.1 ? -Math.floor(next() * 900) : Math.floor(next() ** 4 * 1500);
    if (i === 2500) now -= 3 * 3_600_000;
    return { now, key: `client ${Math.floor(next() * 8)}`, count: next() < 0.5 ? 1 : Math.round(next() * 40) / 16 };
  });
}

/** The package's own limiter on the same requests. */
const REFERENCE = `import { readFileSync } from "node:fs";
import { defineLimits } from "tidegate";
const { requests, configs } = JSON.parse(readFileSync(process.argv[2], "utf8"));
let now = 0;
const limits = defineLimits(configs, { now: () => now });
const totals = { granted: 0, denied: 0, tokensGranted: 0, never: 0, worst: {} };
for (const request of requests) {
  now = request.now;
  const all = limits.limitAll(Object.keys(configs).map((name) => ({ name, key: request.key, count: request.count })));
  if (all.ok) { totals.granted++; totals.tokensGranted += request.count; continue; }
  totals.denied++;
  if (all.retryAt === undefined) totals.never++;
  all.decisions.forEach((d, i) => {
    if (d.ok) return;
    const of = (totals.worst[Object.keys(configs)[i]] ??= {});
    const seen = (of[request.key] ??= { denied: 0, longestWait: 0 });
    seen.denied++;
    seen.longestWait = Math.max(seen.longestWait, d.retryAfter ?? 0);
  });
}
console.log(JSON.stringify(totals));`;

const LIMITS = [
  ["bucket", { api: { kind: "token bucket", rate: 1, period: 1000, capacity: 5 } }],
  ["a third of a token", { api: { kind: "token bucket", rate: 1, period: 700, capacity: 2.25 } }],
  ["window, its start of the key", { api: { kind: "fixed window", rate: 4, period: 1700 } }],
  [
    "both",
    { a: { kind: "token bucket", rate: 3, period: 1000 }, b: { kind: "fixed window", rate: 15, period: 30_000 } },
  ],
] as const;

describe("tidegate replay, from the packed tarballs", () => {
  test("prints how to install the package if it is not installed", () => {
    const sentence = "replay is the package tidegate-replay, which is not installed: npm install tidegate-replay";
    expect([without.status, without.stdout, without.stderr]).toEqual([2, "", `tidegate: ${sentence}\n`]);
  });

  test.each(LIMITS.map((row, i) => [...row, i] as const))(
    "grants and denies what the limiter does, to the bit: %s",
    (_, configs, seed) => {
      const requests = traffic(seed + 1);
      const reference = user.write("reference.mjs", REFERENCE);
      const known = user.write("requests.json", JSON.stringify({ requests, configs }));
      const expected = JSON.parse(output(process.execPath, [reference, known], { cwd: user.folder }));
      const log = requests.map(({ now, key, count }) => JSON.stringify({ time: now, key, cost: count })).join("\n");
      const limits = Object.entries(configs).flatMap(([name, { kind, rate, period, ...rest }]) => {
        const capacity = "capacity" in rest ? ` capacity=${rest.capacity}` : "";
        return ["--limit", `name=${name} kind=${kind.replace(" ", "_")} rate=${rate} period=${period}ms${capacity}`];
      });
      const result = report(["-", ...limits, "--key", "key", "--cost", "cost"], log);
      const { granted, denied, tokensGranted, never } = result;
      const worst = Object.keys(configs).map((name, i) => [
        name,
        Object.fromEntries(
          (result.limits[i]?.worst ?? []).map(({ key, denied, longestWait }) => [key, { denied, longestWait }]),
        ),
      ]);
      expect({ granted, denied, tokensGranted, never, worst: Object.fromEntries(worst) }).toEqual(expected);
      expect(denied).toBeGreaterThan(100);
      expect(granted).toBeGreaterThan(100);
      expect(result.read.outOfOrder).toBeGreaterThan(100);
    },
  );

  test("the page's command prints the page's output", () => {
    cpSync(join(root, "tests/packaging/access.log"), join(user.folder, "access.log"));
    const guide = readFileSync(join(root, "npm/site/guide/replay.md"), "utf8");
    const [, command = "", shown = ""] =
      /^npx tidegate-(replay [^\n]+)\n```\n+```text\n([\s\S]+?)^```/m.exec(guide) ?? [];
    const args = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
    const { status, stdout, stderr } = tidegate(args);
    expect([status, stderr, stdout]).toEqual([0, "", shown]);
    const page = readFileSync(join(user.folder, "report.html"), "utf8");
    expect(page).toMatch(/^<!doctype html>[\s\S]*<svg[\s\S]*prefers-color-scheme:dark[\s\S]*<pre[^>]*>80 requests/);
  });

  test("a file, the same file gzipped, and standard input give the same report", () => {
    const log = readFileSync(join(root, "tests/packaging/access.log"));
    user.write("plain.log", log.toString());
    const limit = ["--limit", "rate=10 period=1m"];
    const [plain, packed] = [report(["plain.log", ...limit]), report(["-", ...limit], gzipSync(log))];
    expect(packed).toMatchObject({ granted: plain.granted, denied: plain.denied, limits: plain.limits });
    expect(plain.read).toMatchObject({ requests: 80, bad: 1 });
  });

  test("replays the rules of a policy document", () => {
    const rule = { name: "api", limit_keys: ["ip:address"], algorithm: "token_bucket" };
    const config = { rate: 10, period: 60_000, capacity: 10 };
    user.write("policy.json", JSON.stringify({ rules: [{ ...rule, algorithm_config: config }] }));
    const log = join(root, "tests/packaging/access.log");
    const by = (...limit: string[]) => report([log, ...limit]).denied;
    expect(by("--policy", "policy.json")).toBe(by("--limit", "rate=10 period=1m"));
  });

  test.skipIf(process.platform === "win32")("can be interrupted while it reads", async () => {
    const child = spawn(process.execPath, [bin, "replay", "-", "--limit", "rate=1 period=1s"], { stdio: "pipe" });
    const ended = once(child, "exit");
    // More than a pipe holds: once it is written, the log is being read.
    const rows = `time,ip\n${"1700000000,10.0.0.1\n".repeat(100_000)}`;
    await new Promise((done) => child.stdin.write(rows, done));
    child.kill("SIGINT");
    expect(await ended).toEqual([null, "SIGINT"]);
  });
});
