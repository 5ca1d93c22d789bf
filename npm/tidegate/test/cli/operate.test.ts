import { describe, expect, test } from "vitest";
import { spanText, stateLines } from "../../src/cli/key-state.ts";
import { visible } from "../../src/cli/output.ts";
import { evaluate } from "../../src/index.ts";
import { tidegate } from "./terminal.ts";

const CONFIG = { kind: "token bucket", rate: 10, period: 60_000, capacity: 20 } as const;
const NOW = 1_700_000_000_000;
const POLICY = JSON.stringify({
  rules: [
    { name: "api", limit_keys: ["ip:address"], algorithm: "token_bucket", algorithm_config: { rps: 1, burst: 2 } },
    {
      name: "plans",
      limit_keys: ["header:a", "header:b"],
      algorithm: "token_bucket",
      algorithm_config: { rps: 1, burst: 2 },
    },
    { name: "all", limit_keys: [], algorithm: "token_bucket", algorithm_config: { rps: 1, burst: 2 } },
  ],
});
const STORE = ["--store", "redis://127.0.0.1:1"];
const ON = [...STORE, "--policy", "p.json"];
const NUMBERS = [...STORE, "--rate", "1", "--period", "1s"];

/** A state with this value at `NOW`, as a person reads it. */
function lines(value: number, count = 1, key: string | undefined = "ann"): string[] {
  const { decision: next } = evaluate({ value, ts: NOW }, CONFIG, { now: NOW, count });
  const { decision: state } = evaluate({ value, ts: NOW }, CONFIG, { now: NOW, count: 0 });
  return stateLines({
    ...next,
    ...{ name: "api", key, value, count, config: CONFIG, resetAt: state.resetAt, now: NOW },
  });
}

describe("the state of a key, in words", () => {
  test("has the tokens, the next call and when the key is full", () => {
    expect(lines(4.5)).toEqual([
      "api ann",
      "  state  4.5 of 20 tokens",
      "  next   a call for 1 token is granted now",
      "  full   in 1 min 33 s, at 2023-11-14T22:14:53.000Z",
      "  limit  token bucket: 10 per 1 min, capacity 20",
    ]);
    expect(lines(0)[1]).toBe("  state  0 of 20 tokens");
    expect(lines(20)[3]).toBe("  full   now, as is a key without calls");
  });

  test("has the tokens owed, and until when a call is denied", () => {
    expect(lines(-139).slice(1, 3)).toEqual([
      "  state  -139 of 20 tokens; 139 tokens owed, for a block, a charge or a reservation",
      "  next   a call for 1 token is denied for 14 min, until 2023-11-14T22:27:20.000Z",
    ]);
  });

  test("reports that a count beyond the capacity is never granted", () => {
    expect(lines(20, 21)[2]).toBe("  next   a call for 21 tokens is never granted: it exceeds capacity");
  });

  test("a key is shown without characters that are invisible, move the cursor or reverse the text", () => {
    expect(lines(20, 1, "\u001b[2Jx\u202e")[0]).toBe("api \\u001b[2Jx\\u202e");
    expect(visible("ann\u200b\n\u2028ü😀\ud800\u{e0041}")).toBe("ann\\u200b\\u000a\\u2028ü😀\\ud800\\udb40\\udc41");
  });

  test.each([
    [0, "0 ms"],
    [999, "999 ms"],
    [59_999, "59 s"],
    [3_600_000, "1 h"],
    [90_061_000, "1 d 1 h"],
  ])("a time of %i ms is %s", (ms, words) => expect(spanText(ms)).toBe(words));
});

describe("a mistake exits with 2, before the store is opened", () => {
  const KEY_RULE = "a value for each of limit_keys of";
  test.each([
    [["get"], "get needs the name of a limit; see tidegate help get"],
    [["get", "api", "k"], "get needs --store, the store of the app; see tidegate help get"],
    [["get", "api", "k", ...STORE], "--rate and --period are needed, or --policy; see tidegate help get"],
    [["get", "api", "k", "--store", "memory", "--policy", "p.json"], "--store must be a store that processes share"],
    [
      ["get", "api", "k", "--store", "mysql://x", "--policy", "p.json"],
      "--store must be file:<folder>, redis://<host>:<port>, rediss://… or postgres://",
    ],
    [
      ["get", "api", "k", "--store", "redis://[", "--policy", "p.json"],
      "--store must be file:<folder>, redis://<host>:<port>, rediss://… or postgres://",
    ],
    [
      ["get", "api", "k", "--store", "redis://u:secret@h/abc", "--policy", "p.json"],
      "--store ends with the number of a database, as redis://<host>/0 does; got redis://u:***@h/abc",
    ],
    [["get", "api", "k", "--store", "file:./no/such", "--policy", "p.json"], "there is none at ./no/such"],
    [["get", "apl", "k", ...ON], '`limit` must be one of api, plans, all; got "apl"'],
    [["get", "api", ...ON], `\`key\` must be ${KEY_RULE} "api", in order: ip:address; got none`],
    [["get", "plans", "k", ...ON], `\`key\` must be ${KEY_RULE} "plans", in order: header:a, header:b; got "k"`],
    [["get", "all", "k", ...ON], '`key` must be left out: all requests share the limit "all"; got "k"'],
    [["get", "api", "k", ...STORE, "--rate", "1", "--period", "1m", "--tier", "pro"], "--tier needs --policy"],
    [["get", "api", "k", ...ON, "--rate", "1"], "--rate cannot be combined with --policy: the document has it"],
    [["get", "api", "k", ...ON, "--tier", "pro"], "`--tier` must be absent: the rule has no tiers"],
    [["get", "api", "k", ...STORE, "--policy", "none.json"], "cannot read none.json: no such file"],
    [["get", "api", "k", ...STORE, "--policy", "wrong.json"], "wrong.json has mistakes; see tidegate check wrong.json"],
    [["get", "api", "k", ...ON, "--key", '"k"'], "--key cannot be combined with <key>"],
    [["get", "api", ...ON, "--key", "k"], "`--key` must be JSON: a string such as"],
    [["get", "api", ...ON, "--key", "[1]"], "`--key` must be JSON: a string such as"],
    [
      ["get", "api", "a", "b", ...NUMBERS],
      "`key` must be one text: only a rule of --policy has a key of several parts",
    ],
    [["get", "api", "k".repeat(1025), ...NUMBERS], "`key` must be"],
    [["get", "a b", "k", ...NUMBERS], "`name` must be"],
    [["get", "api", "k", ...STORE, "--rate", "0", "--period", "1s"], "`rate` must be"],
    [["charge", "api", "k", ...ON, "--count=-1"], "`count` must be a finite number of tokens from 0"],
    [["give", "api", "k", ...ON, "--count", "x"], '--count must be a number; got "x"'],
    [["block", "api", "k", ...ON, "--for", "15x"], '--for must be a number of ms, or a string such as 15m; got "15x"'],
    [
      ["get", "api", "k", ...STORE, "--rate", "1", "--period", "1h30m"],
      '--period must be a number of ms, or a string such as 15m; got "1h30m"',
    ],
    [["block", "api", "k", ...ON], "block needs --for, how long; such as --for 15m"],
    [["block", "api", "k", ...ON, "--for", "0"], "`for` must be"],
    [["block", "api", "k", ...ON, "--for", "15"], "--for 15 would be 15 ms: write the unit, as in 15s, 15m or 15ms"],
    [["get", "api", "-dash", ...ON], "Unknown option '-d': a word that starts with a dash goes last, after --; see"],
    [["reset", "api", "k", ...ON, "--count", "1"], "Unknown option '--count'; see tidegate help reset"],
    [["reset", "api", "k", ...ON, "--schema", "x"], "--schema is of PostgreSQL, postgres://…; got --store redis://"],
  ])("%j", async (argv, sentence) => {
    const { code, out, err } = await tidegate(argv, { "p.json": POLICY, "wrong.json": "{}" });
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(sentence);
    expect(err.split("\n")).toHaveLength(1);
  });
});

test("exits with 1 and prints the client's error if a server does not answer", async () => {
  const { code, out, err } = await tidegate(["get", "api", "k", ...ON], { "p.json": POLICY });
  expect([code, out]).toEqual([1, ""]);
  expect(err).toMatch(/^tidegate: redis: connect of "redis:\/\/127\.0\.0\.1:1" failed: .*ECONNREFUSED/);
});

test("a key that starts with a dash goes after --, and a block of 15 ms has its unit", async () => {
  const get = await tidegate(["get", "api", ...ON, "--", "-dash"], { "p.json": POLICY });
  const block = await tidegate(["block", "api", "k", ...ON, "--for", "15ms"], { "p.json": POLICY });
  for (const { code, err } of [get, block]) expect([code, err]).toEqual([1, expect.stringContaining("ECONNREFUSED")]);
});
