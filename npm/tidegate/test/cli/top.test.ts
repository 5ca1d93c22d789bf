import { afterEach, describe, expect, test, vi } from "vitest";
import { listLines } from "../../src/cli/commands/top.ts";
import { screenOf } from "../../src/cli/output.ts";
import { type Pages, postgresKeys, redisKeys } from "../../src/cli/stored-keys.ts";
import { tidegate } from "./terminal.ts";

const rule = { name: "api", limit_keys: [], algorithm: "token_bucket", algorithm_config: { rps: 1, burst: 2 } };
const tiers = { by: "header:x-plan", settings: { pro: { rps: 2, burst: 4 } } };
const FILES = {
  "p.json": JSON.stringify({ rules: [rule] }),
  "tiers.json": JSON.stringify({ rules: [{ ...rule, tiers }] }),
};
const STORE = ["--store", "redis://127.0.0.1:1"];
const ON = [...STORE, "--policy", "p.json"];
const NUMBERS = [...STORE, "--rate", "1", "--period", "1s"];

afterEach(() => void vi.useRealTimers());

const silent = () => new Promise<unknown>(() => {});
test.each<[string, () => Pages]>([
  ["redis", () => redisKeys({ eval: silent, evalsha: silent })],
  ["postgres", () => postgresKeys({ unsafe: silent })],
])("%s: a server that does not return a page is an error after ten seconds", async (_, keys) => {
  vi.useFakeTimers();
  const failed = expect(keys()[Symbol.asyncIterator]().next()).rejects.toThrow("no page of keys within 10 s");
  await vi.advanceTimersByTimeAsync(10_000);
  await failed;
});

test("the list is a table with one row per key and a heading with the totals", () => {
  const row = { name: "api", value: -14.00049, limit: 3, resetAt: 0, ok: false, retryAt: 1, retryAfter: 899_000 };
  const list = { now: 0, count: 2.5, keys: 9, denied: 2 };
  const never = { ...row, key: "never\u202e", value: 1, retryAt: undefined, retryAfter: undefined };
  const fine = { ...never, name: "login", key: undefined, ok: true, limit: 10 };
  expect(listLines({ ...list, rows: [{ ...row, key: "ann" }, never, fine] })).toEqual([
    "1970-01-01T00:00:00.000Z  2 of 9 keys are denied a call for 2.5 tokens",
    "",
    "limit  key             tokens    denied for",
    "api    ann             -14 of 3  14 min 59 s",
    "api    never\\u202e     1 of 3    ever",
    "login  (all share it)  1 of 10   -",
  ]);
  expect(listLines({ ...list, count: 1, keys: 0, denied: 0, rows: [] })).toEqual([
    "1970-01-01T00:00:00.000Z  0 of 0 keys are denied a call for 1 token",
  ]);
});

test("a terminal shows the first lines, and those that it has no room for scroll none of them away", () => {
  const shown = (lines: readonly string[], rows?: number, columns?: number) =>
    screenOf(lines, rows, columns).slice("\x1b[H".length, -"\x1b[J".length).replaceAll("\x1b[K", "");
  const lines = ["head", "", "a".repeat(20), "b", "c"];
  expect(shown(lines, 6, 20)).toBe(`head\n\n${lines[2]}\nb\nc\n`);
  expect(shown(lines, 5, 20)).toBe(`head\n\n${lines[2]}\nb\n`);
  expect(shown(lines, 5, 19)).toBe(`head\n\n${lines[2]}\n`);
  expect(shown(lines, 4, 19)).toBe("head\n\n");
  expect(shown(lines, 0, 0)).toBe(shown(lines));
  expect(shown(lines)).toBe(`${lines.join("\n")}\n`);
});

test("rules with tiers that are not listed are named, and a rule of which no tier was chosen", async () => {
  const files = { "p.json": JSON.stringify({ rules: [rule, { ...rule, name: "plan", tiers }] }) };
  const noCount = ["--count=-1"]; // ends before the store is opened
  const all = await tidegate(["top", ...ON, ...noCount], files);
  expect(all.err).toContain("tidegate: plan has tiers, so it is not listed: name it, and its --tier\n");
  const note = "tidegate: plan has tiers (pro): for a key of one of them, give its --tier\n";
  expect((await tidegate(["top", "plan", ...ON, ...noCount], files)).err).toContain(note);
  expect((await tidegate(["block", "plan", ...ON, "--for", "1"], files)).err).toContain(note);
  expect((await tidegate(["top", "plan", ...ON, "--tier", "pro", ...noCount], files)).err).not.toContain("has tiers");
});

describe("a mistake exits with 2, before the store is opened", () => {
  test.each([
    [["top"], "top needs --store, the store of the app; see tidegate help top"],
    [["top", ...STORE], "top needs the name of a limit, or --policy; see tidegate help top"],
    [["top", "api", ...STORE], "--rate and --period are needed, or --policy; see tidegate help top"],
    [["top", "api", "k", ...ON], 'top takes one limit, and no "k"; see tidegate help top'],
    [["top", "apl", ...ON], '`limit` must be one of api; got "apl"'],
    [["top", ...ON, "--tier", "pro"], "--tier needs the name of its rule"],
    [["top", ...STORE, "--policy", "tiers.json"], "every rule has tiers: name one of them, and its --tier"],
    [["top", ...ON, "--rate", "1"], "--rate cannot be combined with --policy: the document has it"],
    [["top", "--store", "memory", "--policy", "p.json"], "--store must be a store that processes share; got"],
    [
      ["top", "--store", "mysql://x", "--policy", "p.json"],
      "--store must be redis://<host>:<port>, rediss://… or postgres://<user>@<host>/<database>; got",
    ],
    [["top", "--store", "file:./x", "--policy", "p.json"], "a folder has hashes of keys, which cannot be listed"],
    [["top", "a b", ...NUMBERS], "`name` must be"],
    [["top", "api", ...STORE, "--rate", "0", "--period", "1s"], "`rate` must be"],
    [["top", ...ON, "--count=-1"], "`count` must be a finite number of tokens from 0"],
    [["top", ...ON, "--rows", "0"], "`--rows` must be an integer of at least 1; got 0"],
    [["top", ...ON, "--rows", "1.5"], "`--rows` must be an integer of at least 1; got 1.5"],
    [["top", ...ON, "--every", "50ms"], "`--every` must be a time from 100 ms to 2147483647 ms; got 50"],
    // The host's timers fire at once for a longer time: the store would be read without a pause.
    [["top", ...ON, "--every", "30d"], "`--every` must be a time from 100 ms to 2147483647 ms; got 2592000000"],
    [["top", ...ON, "--schema", "x"], "--schema is of PostgreSQL, postgres://…; got --store redis://"],
  ])("%j", async (argv, sentence) => {
    const { code, out, err } = await tidegate(argv, FILES);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(sentence);
    expect(err.split("\n")).toHaveLength(1);
  });
});

test("exits with 1 and prints the client's error if a server does not answer", async () => {
  const { code, out, err } = await tidegate(["top", ...ON], FILES);
  expect([code, out]).toEqual([1, ""]);
  expect(err).toMatch(/^tidegate: redis: connect of "redis:\/\/127\.0\.0\.1:1" failed: .*ECONNREFUSED/);
});
