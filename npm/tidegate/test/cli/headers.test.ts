import { describe, expect, test } from "vitest";
import { defineLimits, MINUTE } from "../../src/index.ts";
import { type HeaderFamily, rateLimitHeaders } from "../../src/http/index.ts";
import { tidegate } from "./terminal.ts";

const LIMIT = ["headers", "--rate", "10", "--period", "60000", "--capacity", "20", "--name", "api"];

describe("tidegate headers", () => {
  test("prints the fields of a fresh key, for each family", async () => {
    const { code, out } = await tidegate(LIMIT);
    expect(code).toBe(0);
    expect(out.split("\n")).toEqual([
      "status 200",
      "",
      "draft-11",
      '  RateLimit-Policy: "api";q=20;w=120',
      '  RateLimit: "api";r=19;t=114',
      "",
      "draft-7",
      "  RateLimit-Policy: 20;w=120",
      "  RateLimit: limit=20, remaining=19, reset=114",
      "",
      "draft-6",
      "  RateLimit-Policy: 20;w=120",
      "  RateLimit-Limit: 20",
      "  RateLimit-Remaining: 19",
      "  RateLimit-Reset: 114",
      "",
      "x-ratelimit",
      "  X-RateLimit-Limit: 20",
      "  X-RateLimit-Remaining: 19",
      "  X-RateLimit-Reset: 1700000114",
    ]);
  });

  test("a denial has its status, and Retry-After in every family; `--json` prints the same", async () => {
    const state = ["--value", "0.5", "--ts", "1699999999000", "--now", "1700000000000"];
    const { code, out } = await tidegate([...LIMIT, ...state, "--json"]);
    const { status, fields } = JSON.parse(out) as { status: number; fields: Record<string, Record<string, string>> };
    expect([code, status]).toEqual([0, 429]);
    expect(Object.values(fields).map((family) => family["Retry-After"])).toEqual(["2", "2", "2", "2"]);
    expect(fields["draft-11"]?.["RateLimit"]).toBe('"api";r=0;t=2');
  });

  test("a stored decision prints what the library writes", async () => {
    const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } }, { now: () => 1e12 });
    limits.limit("api");
    const decision = limits.limit("api");
    const files = { "d.json": JSON.stringify(decision) };
    const { out } = await tidegate(["headers", "--decision", "d.json", "--json"], files);
    const { fields } = JSON.parse(out) as { fields: Record<HeaderFamily, Record<string, string>> };
    for (const family of Object.keys(fields) as HeaderFamily[]) {
      expect(fields[family]).toEqual(rateLimitHeaders(decision, { fields: family }));
    }
  });

  test("prints the fields of a document's rule, and of one of its tiers", async () => {
    const config = { rate: 10, period: 60_000 };
    const tiers = { by: "jwt:plan", settings: { pro: { rate: 100, period: 60_000 } } };
    const rule = {
      name: "api",
      limit_keys: ["ip:address"],
      algorithm: "token_bucket",
      algorithm_config: config,
      tiers,
    };
    const files = { "p.json": JSON.stringify({ rules: [rule] }) };
    const printed = async (...more: string[]) =>
      (await tidegate(["headers", "--policy", "p.json", "--rule", "api", "--fields", "draft-11", ...more], files)).out;
    expect(await printed()).toContain('RateLimit-Policy: "api";q=10;w=60');
    expect(await printed("--tier", "pro")).toContain('RateLimit-Policy: "api";q=100;w=60');
  });

  test.each([
    [["headers", "--rate", "10"], "--rate and --period are needed"],
    [
      ["headers", "--rate", "10", "--period", "60"],
      "--period 60 would be 60 ms: write the unit, as in 15s, 15m or 15ms",
    ],
    [["headers", "--rate", "ten", "--period", "1000"], '--rate must be a number; got "ten"'],
    [["headers", "--rate", "0", "--period", "1000"], "`rate` must be a finite number of tokens above 0"],
    [[...LIMIT, "--kind", "leaky"], '`kind` must be "token bucket" or "fixed window"; got "leaky"'],
    [[...LIMIT, "--count", "-1"], "--count"],
    [[...LIMIT, "--count=-1"], "`count` must be a finite number of tokens from 0"],
    [[...LIMIT, "--ts", "5"], "--ts is the time of --value"],
    [
      [...LIMIT, "--fields", "draft-12"],
      '`--fields` must be one of draft-11, draft-7, draft-6, x-ratelimit, and is repeated for several; got "draft-12"',
    ],
    [[...LIMIT, "--fields", "draft-7,draft-6"], 'and is repeated for several; got "draft-7,draft-6"'],
    [[...LIMIT, "--decision", "else.json"], "--name cannot be combined with --decision: the decision has it"],
    [["headers", "--decision", "else.json", "--reserve"], "--reserve cannot be combined with --decision"],
    [[...LIMIT, "--tier", "pro"], "--tier needs --policy"],
    [[...LIMIT, "--policy", "else.json"], "--name cannot be combined with --policy: the document has it"],
    [[...LIMIT, "--rule", "api"], "--rule needs --policy"],
    [["headers", "--policy", "else.json"], "--policy needs --rule, the name of one of its rules"],
    [["headers", "--decision", "gone.json"], "cannot read gone.json: no such file"],
    [["headers", "--decision", "broken.json"], "broken.json is not JSON"],
    [["headers", "--decision", "else.json"], "`decision` must be a decision"],
    [[...LIMIT, "beside"], 'headers takes no "beside"'],
  ])("%j exits with 2 and prints the reason", async (argv, sentence) => {
    const { code, out, err } = await tidegate(argv, { "broken.json": "{", "else.json": "{}" });
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(sentence);
    expect(err.split("\n")).toHaveLength(1);
  });
});
