import { describe, expect, test } from "vitest";
import { printable } from "../../src/cli/output.ts";
import { INVALID, PLANS, VALID } from "../policies/documents.ts";
import { tidegate } from "./terminal.ts";

const good = JSON.stringify(PLANS);
const bad = JSON.stringify({ rules: [{ ...PLANS.rules[0], limit_kyes: [], algorithm_config: { rps: 0 } }] });

describe("tidegate check", () => {
  test("exits with 0 and prints the number of limits for a valid document", async () => {
    const run = await tidegate(["check", "policy.json"], { "policy.json": good });
    expect(run).toEqual({ code: 0, out: "policy.json: no mistakes, 3 limits", err: "" });
    const every = Object.fromEntries(VALID.map(({ document }, i) => [`${i}.json`, JSON.stringify(document)]));
    expect((await tidegate(["check", ...Object.keys(every)], every)).code).toBe(0);
  });

  test("notes a period of less than a second, which may have been meant in seconds", async () => {
    const rule = (name: string, period: number | string) =>
      ({ name, limit_keys: [], algorithm: "fixed_window", algorithm_config: { rate: 1, period } }) as const;
    const tiers = { by: "jwt:plan", settings: { pro: { rate: 2, period: 60 }, max: { rate: 3, period: 60 } } };
    const rules = [rule("a", 30), { ...rule("b", "1m"), tiers }, rule("c", 1000)];
    const { code, out, err } = await tidegate(["check", "p.json"], { "p.json": JSON.stringify({ rules }) });
    expect([code, out]).toEqual([0, "p.json: no mistakes, 3 limits"]);
    expect(err.split("\n")).toEqual([
      "p.json: note: a period of a is 30 ms: a number without a unit is ms",
      "p.json: note: a period of b is 60 ms: a number without a unit is ms",
    ]);
  });

  test("prints one line per mistake, after the file's name; one invalid file of several exits with 1", async () => {
    const { code, out } = await tidegate(["check", "good.json", "-"], { "good.json": good, "-": bad });
    expect(code).toBe(1);
    expect(out.split("\n")).toEqual([
      "good.json: no mistakes, 3 limits",
      expect.stringMatching(/^-: rule 0 "enterprise": `limit_kyes` must be absent: .*; did you mean `limit_keys`\?$/),
      expect.stringMatching(/^-: rule 0 "enterprise": `algorithm_config.rps` must be .*; got 0$/),
      "-: 2 mistakes",
    ]);
  });

  test("lists the first 1000 mistakes of more, and the last line does not state another number of them", async () => {
    const rules = Array.from({ length: 100 }, () =>
      Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`x${i}`, i])),
    );
    const { out } = await tidegate(["check", "a"], { a: JSON.stringify({ rules }) });
    const lines = out.split("\n");
    expect([lines.length, lines.at(-1)]).toEqual([1002, "a: more than 1000 mistakes"]);
    expect(lines.at(-2)).toMatch(/the first 1000 are listed; got 2\d00$/);
  });

  test.each(INVALID)("$about: the messages are the shared ones", async ({ document, text, sentences }) => {
    const { code, out } = await tidegate(["check", "a"], { a: text ?? JSON.stringify(document) });
    expect(code).toBe(1);
    expect(out.split("\n").slice(0, -1)).toEqual(sentences.map((sentence) => printable(`a: ${sentence}`)));
  });

  test("`--json` prints one object per file", async () => {
    const { code, out } = await tidegate(["check", "--json", "good.json", "bad.json"], {
      "good.json": good,
      "bad.json": bad,
    });
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject([
      { file: "good.json", ok: true, rules: ["enterprise", "pro", "free"], problems: [] },
      { file: "bad.json", ok: false, rules: [], problems: [{ rule: 0, path: "rules[0].limit_kyes" }, { got: "0" }] },
    ]);
  });

  test("text that is not JSON is one mistake; a missing file exits with 2", async () => {
    const broken = await tidegate(["check", "a"], { a: "{" });
    expect(broken.code).toBe(1);
    expect(broken.out).toMatch(/^a: `document` must be JSON; got .*\na: 1 mistake$/);
    expect(await tidegate(["check", "gone"])).toEqual({
      code: 2,
      out: "",
      err: "tidegate: cannot read gone: no such file",
    });
    expect((await tidegate(["check"])).code).toBe(2);
  });
});

describe("tidegate headers --policy", () => {
  const tiers = { by: "jwt:plan", settings: { pro: { rps: 5, burst: 50 } } };
  const files = {
    "policy.json": JSON.stringify({ rules: [{ ...PLANS.rules[2], tiers }] }),
    "bad.json": bad,
  };
  const policy = ["headers", "--policy", "policy.json", "--fields", "draft-11"];

  test("a rule in shadow mode has no headers, granted or not", async () => {
    const shadow = { "policy.json": JSON.stringify({ rules: [{ ...PLANS.rules[2], tiers, shadow: true }] }) };
    for (const value of ["9", "0"]) {
      const { code, out } = await tidegate([...policy, "--rule", "free", "--value", value, "--json"], shadow);
      expect([code, JSON.parse(out)]).toEqual([0, { status: 200, fields: { "draft-11": {} } }]);
    }
  });

  test("prints the headers of a rule's limit, and of a tier's", async () => {
    const own = await tidegate([...policy, "--rule", "free"], files);
    expect(own.out).toContain('RateLimit-Policy: "free";q=20;w=2\n  RateLimit: "free";r=19;t=2');
    const pro = await tidegate([...policy, "--rule", "free", "--tier", "pro", "--value", "0"], files);
    expect(pro.out).toMatch(/^status 429\n[\s\S]*"free";q=50;w=10\n {2}RateLimit: "free";r=0;t=1\n {2}Retry-After: 1$/);
  });

  test.each([
    [[...policy], "--policy needs --rule"],
    [[...policy, "--rule", "pro"], '`--rule` must be one of free; got "pro"'],
    [[...policy, "--rule", "free", "--tier", "gold"], '`--tier` must be one of pro; got "gold"'],
    [[...policy, "--rule", "free", "--rate", "5"], "--rate cannot be combined with --policy"],
    [["headers", "--policy", "bad.json", "--rule", "a"], "bad.json has mistakes; see tidegate check bad.json"],
  ])("%j exits with 2 and prints the reason", async (argv, sentence) => {
    const { code, out, err } = await tidegate(argv, files);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(sentence);
  });
});

test("what a terminal obeys, or what turns text, is printed as an escape, whatever a document holds", async () => {
  const evil = "\u001b[31m\u009b2J\u202e";
  const files = { "text.json": `{"rules": tru${evil}`, "field.json": JSON.stringify({ rules: [], [evil]: "a\nb" }) };
  for (const args of [["text.json"], ["field.json"], ["--json", "text.json"], ["--json", "field.json"]]) {
    const { code, out } = await tidegate(["check", ...args], files);
    expect(code).toBe(1);
    expect(out.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(out).toContain("\\u009b");
    expect(out).toContain("\\u202e");
  }
  expect((await tidegate([`a${evil}`])).err).toContain("\\u009b2J\\u202e");
});
