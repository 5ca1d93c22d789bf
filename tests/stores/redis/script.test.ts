/** The script as other languages use it: the shared vectors, to the bit, through redis-cli and through Python's redis-py. */
import { execFile, execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Limit } from "tidegate/store";
import { Limit as SourceLimit } from "../../../npm/tidegate/src/limit/limit.ts";
import { redisKeyOf } from "../../../npm/tidegate/src/stores/redis/key.ts";
import { Rule } from "../../../npm/tidegate/src/stores/redis/script.ts";
import type { VectorRequest, VectorStep } from "../../../npm/tidegate/src/testing/vectors.ts";
import { remove, temporaryFolder } from "../../support/folders.ts";
import { vectors } from "../vectors.ts";
import { client, server, store, withServer } from "./fixture.ts";

const SCRIPT = fileURLToPath(new URL("../../../npm/tidegate/src/stores/redis/tidegate.lua", import.meta.url));
const SOURCE = readFileSync(SCRIPT, "utf8");
const PYTHON = fileURLToPath(new URL("./languages/redis_py.py", import.meta.url));
const REDIS_PY = "redis==8.1.0";

withServer();

/** One call of the script. */
interface Call {
  readonly keys: string[];
  readonly args: string[];
}
interface Done {
  readonly reply: unknown;
  /** What each key holds afterwards, hexadecimal. */
  readonly held: readonly (string | null)[];
}
interface Expected {
  readonly about: string;
  readonly call: Call;
  /** Of each decision: ok, value, ts, retryAt, resetAt, reason, now. `undefined`: not compared. */
  readonly decisions: readonly (readonly unknown[])[];
  readonly held: readonly (string | null | undefined)[];
}

function decisionOf(expected: Readonly<Record<string, unknown>> | null, now: number): unknown[] {
  if (expected === null) return [1];
  const { ok, value, ts, retryAt, resetAt, reason = "" } = expected;
  // A `project` has only two numbers.
  if (!("ok" in expected)) return [undefined, value, ts];
  return [ok ? 1 : 0, value, ts, retryAt ?? "", resetAt, reason, now];
}

/** The arguments of a rule as another language has them: a limit's numbers and the start of its windows. */
function rule({ limit: name, key, config, count = 1, reserve = false }: VectorRequest, op: VectorStep["op"]): string[] {
  const limit = new SourceLimit(name, config);
  const takes = op === "takeAll" ? "take" : op === "project" ? "check" : op;
  const action = { op: takes, limit, key, count: op === "project" ? 0 : count, reserve };
  return [...new Rule(action, limit.start(key), false).args];
}

function plan(file: string): Expected[] {
  const all: Expected[] = [];
  for (const vector of vectors[file]?.vectors ?? []) {
    let config = vector.config;
    for (const [index, step] of (vector.steps ?? []).entries()) {
      config = step.config ?? config;
      const about = `${file}: ${vector.name}, step ${index}`;
      const count = step.for ?? step.count;
      const alone = { ...step, count, limit: vector.limit, key: vector.key, config } as VectorRequest;
      const requests = step.requests ?? [alone];
      if (requests.length === 0 || requests.some((request) => (request.config?.shards ?? 1) > 1)) continue;
      const prefix = `${file}:${vector.name.replaceAll(/[{}]/g, "")}:`;
      const each = requests.map(({ limit, key }) => redisKeyOf(prefix, limit, undefined, key, undefined));
      // Requests on one key are one request for their sum, which the caller of the script makes.
      const keys = [...new Set(each)];
      if (step.requests === undefined) {
        const args = ["decision", "", ...rule(alone, step.op), `${step.now}`];
        const held = [(step.state as { bits?: string } | null)?.bits ?? null];
        all.push({ about, call: { keys, args }, decisions: [decisionOf(step.expect, step.now)], held });
        continue;
      }
      const rules = keys.flatMap((key) => {
        const same = requests.filter((_, i) => each[i] === key);
        const count = same.reduce((sum, request) => sum + (request.count ?? 1), 0);
        return rule({ ...(same[0] as VectorRequest), count, reserve: same.every(({ reserve }) => reserve) }, "takeAll");
      });
      const size = `${keys.length}`;
      const args = [
        "decision",
        "",
        "many",
        `${step.now}`,
        size,
        ...rules,
        size,
        "all",
        ...keys.map((_, i) => `${i + 1}`),
      ];
      const { decisions } = step.expect as { decisions: Readonly<Record<string, unknown>>[] };
      const held = keys.map((key) => (step.states?.[each.indexOf(key)] as { bits?: string } | null)?.bits ?? null);
      const distinct = keys.map((key) => decisions[each.indexOf(key)] as Readonly<Record<string, unknown>>);
      all.push({ about, call: { keys, args }, decisions: distinct.map((one) => decisionOf(one, step.now)), held });
    }
  }
  return all;
}

function compare(expected: readonly Expected[], done: readonly Done[]): void {
  expect(done).toHaveLength(expected.length);
  for (const [i, { about, decisions, held }] of expected.entries()) {
    const { reply, held: got } = done[i] as Done;
    const replies = (Array.isArray((reply as unknown[])[0]) ? reply : [reply]) as unknown[][];
    expect(replies.length, about).toBe(decisions.length);
    for (const [n, decision] of decisions.entries()) {
      const numbers = decision.map((value, at) => {
        const own = (replies[n] as unknown[])[at];
        return value === undefined || (typeof value === "string" && value !== "") ? own : own === "" ? "" : Number(own);
      });
      expect(numbers, about).toEqual(decision.map((value, at) => (value === undefined ? replies[n]?.[at] : value)));
    }
    expect(got, about).toEqual(held);
  }
}

const files = Object.keys(vectors).filter((file) => plan(file).length > 0);

const HEX =
  "local s = redis.call('GET', KEYS[1]) return s and (s:gsub('.', function(c) return string.format('%02x', c:byte()) end)) or 'none'";
const quoted = (text: string): string =>
  `"${[...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")}"`;

describe("redis-cli", () => {
  test.each(files)("%s", async (file) => {
    const load = ["-p", `${server.port}`, "-x", "SCRIPT", "LOAD"];
    const sha = execFileSync("redis-cli", load, { input: execFileSync("cat", [SCRIPT]) })
      .toString()
      .trim();
    const expected = plan(file);
    const lines = expected.flatMap(({ call: { keys, args } }) => [
      `EVALSHA ${sha} ${keys.length} ${[...keys, ...args].map(quoted).join(" ")}`,
      ...keys.map((key) => `EVAL ${quoted(HEX)} 1 ${quoted(key)}`),
    ]);
    const input = `${lines.join("\n")}\n`;
    const cli = execFileSync("redis-cli", ["-p", `${server.port}`], { input, encoding: "utf8", maxBuffer: Infinity });
    const output = cli.split("\n");
    let at = 0;
    const done = expected.map(({ call: { keys } }): Done => {
      const decisions = keys.map((_, i) => output.slice(at + 7 * i, at + 7 * i + 7));
      at += 8 * keys.length;
      const held = output.slice(at - keys.length, at);
      return { reply: decisions, held: held.map((state) => (state === "none" ? null : state)) };
    });
    compare(expected, done);
  });
});

test("an argument that is wrong is an error that names it, and nothing is written", async () => {
  const run = (...args: string[]) => client.eval(SOURCE, 1, "tidegate:api:user", ...args);
  const good = ["decision", "", "1", "10", "60000", "10", "take", "", "", "1800000000000.9"];
  const bad: [at: number, given: string, message: string][] = [
    [0, "Decision", 'the form of the reply must be decision; got "Decision"'],
    [1, "soon", 'the deadline must be ms from 0 to 4503599627370496, or empty; got "soon"'],
    [2, "-5", 'count must be tokens from 0 to 1099511627776; got "-5"'],
    [2, "nan", 'got "nan"'],
    [2, "", "count must be"],
    [3, "0", "rate must be tokens above 0"],
    [3, "1099511627777", "rate must be tokens above 0 and up to 1099511627776"],
    [4, "1.5", "period must be an integer of ms"],
    [5, "inf", "capacity must be"],
    [6, "Check", 'the operation must be take, check, give, charge, block or reset; got "Check"'],
    [7, "-1", 'what may be owed must be "unlimited" or tokens'],
    [7, "1099511627777", 'what may be owed must be "unlimited" or tokens'],
    [8, "monday", 'start must be "first request" or an integer of ms'],
    [8, "0.5", 'start must be "first request" or an integer of ms'],
    [9, "now", 'now must be ms from 0 to 4503599627370496, or empty; got "now"'],
    [9, "-1", "now must be ms from 0"],
  ];
  for (const [at, given, message] of bad) {
    await expect(run(...good.with(at, given)), `${at} ${given}`).rejects.toThrow(message);
  }
  for (const length of ["0", "1.5"]) {
    await expect(run(...good.with(6, "block").with(2, length))).rejects.toThrow(
      "count must be an integer of ms from 1",
    );
  }
  const many = ["decision", "", "many", "", "1"];
  await expect(run(...many, "-5", "10", "60000", "10", "", "", "", "1", "1", "1")).rejects.toThrow("count must be");
  for (const rules of ["x", "0"]) {
    await expect(run(...many.with(4, rules))).rejects.toThrow("the number of rules must be an integer");
  }
  const rules = ["1", "10", "60000", "10", "", "", "", "0", "1", "1", "1", "reset", "", ""];
  for (const [message, ...runs] of [
    ["a run's keys must be an integer from 1, with those of all runs the number of keys; got none"],
    ['of all runs the number of keys; got "2"', "2", "1", "1"],
    ["a run's keys must be an integer from 1", "x", "1", "1"],
    ["a run's keys must be an integer from 1", "0.5", "1", "1"],
    ['times must be "all" or an integer from 1; got "0"', "1", "0", "1"],
    ['times must be "all" or an integer from 1; got "ALL"', "1", "ALL", "1"],
    ['the rule must be from 1 to the number of rules; got "3"', "1", "1", "3"],
    ["the rule must be from 1 to the number of rules; got none", "1", "1"],
    ["the rule must be from 1 to the number of rules; got none", "1", "all"],
  ] as const) {
    await expect(run(...many.with(4, "2"), ...rules, ...runs), runs.join(" ")).rejects.toThrow(message);
  }
  await expect(run(...good.slice(0, 5))).rejects.toThrow("capacity must be tokens from 0 to 1099511627776; got none");
  expect(await client.dbsize()).toBe(0);
  // A clock with fractions, such as Python's, is floored.
  expect(await run(...good)).toMatchObject({ 0: 1, 1: "9", 2: "1800000000000", 6: "1800000000000" });
});

const python = ["python3", "python"].find((name) => {
  try {
    return execFileSync(name, ["-c", "import venv, ensurepip"]).length === 0;
  } catch {
    return false;
  }
});
if (python === undefined) console.warn("!!! THE SCRIPT IS NOT TESTED FROM PYTHON: apt-get install python3-venv");

test("a clock that is passed in decides with a deadline too, and a run of times has a decision for each", async () => {
  const [now, deadline] = ["1000", `${2 ** 52}`];
  const rule = ["4", "10", "1000", "10", "take", "", ""];
  expect(await client.eval(SOURCE, 1, "k", "decision", deadline, ...rule, now)).toMatchObject({ 0: 1, 1: "6", 6: now });
  const run = ["decision", deadline, "many", now, "1", ...rule, "1", "3", "1"];
  expect(await client.eval(SOURCE, 1, "k", ...run)).toMatchObject([
    { 0: 1, 1: "2" },
    { 0: 0, 1: "2" },
    { 0: 0, 1: "2" },
  ]);
});

test("an argument that is empty is the default, in each form of the reply", async () => {
  const defaults = ["take", "", "", ""];
  for (const form of ["decision", "bytes", "text"]) {
    const replies = [];
    for (let given = 0; given <= defaults.length; given++) {
      const args = [form, "", "1", "10", `${2 ** 40}`, "10", ...defaults.slice(0, given)];
      replies.push(sizeOf(await client.callBuffer("EVAL", SOURCE, "1", `${form} ${given}`, ...args)));
    }
    expect(new Set(replies).size, `${form}: ${replies.join()}`).toBe(1);
  }
});

/** How many items, or bytes: the clocks in them differ. */
const sizeOf = (reply: unknown): number => (reply as Buffer | unknown[]).length;

test("members of an all on one key take the sum of their counts, or nothing", async () => {
  const held = (key: string) =>
    client.eval(SOURCE, 1, key, "decision", "", "0", "10", "1000", "10", "", "", "", "5000");
  const all = (key: string, count: string) => {
    const rule = [count, "10", "1000", "10", "take", "", ""];
    return client.eval(SOURCE, 2, key, key, "decision", "", "many", "5000", "1", ...rule, "2", "all", "1", "1");
  };
  expect(await all("much", "6")).toMatchObject([
    { 0: 1, 1: "4" },
    { 0: 0, 5: "exceeds capacity" },
  ]);
  expect(await held("much")).toMatchObject({ 1: "10" });
  expect(await all("some", "4")).toMatchObject([
    { 0: 1, 1: "6" },
    { 0: 1, 1: "2" },
  ]);
  expect(await held("some")).toMatchObject({ 1: "2" });
});

describe.skipIf(python === undefined && process.env["TIDEGATE_REQUIRE_ALL"] !== "1")("Python, redis-py", () => {
  const folder = temporaryFolder("redis-py");
  const program = join(folder, "bin", "python");
  beforeAll(async () => {
    await promisify(execFile)(python as string, ["-m", "venv", folder]);
    await promisify(execFile)(program, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", REDIS_PY]);
    if (!existsSync(program)) throw new Error(`no Python in ${folder}`);
  });
  afterAll(() => remove(folder));

  const run = async (calls: readonly Call[]): Promise<Done[]> => {
    const child = promisify(execFile)(program, [PYTHON, `${server.port}`, SCRIPT], { maxBuffer: 2 ** 26 });
    child.child.stdin?.end(JSON.stringify(calls));
    return JSON.parse((await child).stdout);
  };

  test.each(files)("%s", async (file) => {
    const expected = plan(file);
    compare(expected, await run(expected.map(({ call }) => call)));
  });

  test("a limit is shared with a service in JavaScript, by this server's clock", async () => {
    const limit = new Limit("api", { kind: "token bucket", rate: 10, period: 2 ** 40 });
    const take = { op: "take", limit, key: "user", count: 3, reserve: false } as const;
    expect((await store.decide(take, undefined)).remaining).toBe(7);
    const args = ["decision", "", "4", "10", `${2 ** 40}`, "10"];
    const [granted, denied] = await run(Array(2).fill({ keys: ["tidegate:api:user"], args }));
    expect(granted?.reply).toMatchObject({ 0: 1 });
    expect(denied?.reply).toMatchObject({ 0: 0 });
    expect(Math.floor((await store.getValue(limit, "user", undefined)).value)).toBe(3);
  });

  test("the guide's program grants the capacity, and returns how long to wait", async () => {
    const limit = new Limit("api", { kind: "token bucket", rate: 10, period: 60_000 });
    await store.decide({ op: "take", limit, key: "{ada}", count: 9, reserve: false }, undefined);
    const env = { ...process.env, TIDEGATE_LUA: SCRIPT, REDIS_URL: server.url };
    const program = fileURLToPath(new URL("./languages/limit.py", import.meta.url));
    const code =
      "import limit; print([limit.limit('ada')[0] for _ in range(11)].count(True), limit.limit('ada'), limit.limit('{ada}')[:2])";
    const options = { env: { ...env, PYTHONPATH: join(program, "..") } };
    const { stdout } = await promisify(execFile)(join(folder, "bin", "python"), ["-B", "-c", code], options);
    expect(stdout).toMatch(/^10 \(False, 0, \d{1,4}\) \(True, 0\)\n$/);
  });

  test("a key that holds no state is an error, and what has passed its deadline is late", async () => {
    await client.set("bad", "no state");
    const numbers = ["1", "10", "1000", "10"];
    const [bad, many, late] = await run([
      { keys: ["bad"], args: ["decision", "", ...numbers] },
      { keys: ["bad", "good"], args: ["decision", "", "many", "", "1", ...numbers, "", "", "", "2", "all", "1", "1"] },
      { keys: ["good"], args: ["decision", "1000", ...numbers] },
    ]);
    expect(bad?.reply).toEqual({ error: expect.stringContaining("corrupt state: a state must be 16 bytes") });
    expect(many?.reply).toEqual([
      { error: expect.stringContaining("corrupt state: a state must be 16 bytes") },
      { error: expect.stringContaining("another member of the call") },
    ]);
    expect(late?.reply).toMatch(/^late \d{13}$/);
    expect(await client.keys("*")).not.toContain("good");
  });
});
