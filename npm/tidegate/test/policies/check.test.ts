import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isInputError } from "../../src/index.ts";
import { examine } from "../../src/policies/check.ts";
import { checkPolicies, definePolicies, PolicyError } from "../../src/policies/index.ts";
import { repeated } from "../../src/policies/repeated.ts";
import { INVALID, PLANS, VALID } from "./documents.ts";
import { there } from "../realm.ts";

const schemaFile = new URL("../../src/engine/generated/policy.schema.json", import.meta.url);
const schema = JSON.parse(readFileSync(schemaFile, "utf8")) as object;
const fits = new Ajv2020({ strict: true, strictRequired: false, strictTypes: false, allErrors: true }).compile(schema);

describe("valid documents", () => {
  test.each(VALID)(
    "$about: the check finds no mistake, as a value and as text, and the schema agrees",
    ({ document }) => {
      expect(checkPolicies(document as object)).toEqual([]);
      expect(checkPolicies(JSON.stringify(document))).toEqual([]);
      expect(fits(document), JSON.stringify(fits.errors)).toBe(true);
    },
  );

  test.each(VALID)("$about: its limits are in force", ({ document, limits }) => {
    expect(definePolicies(document as object, { claims: () => undefined }).names).toEqual(limits);
  });
});

test("a checked document has each field that was given, and the defaults", () => {
  const least = { name: "least", limit_keys: [], algorithm: "token_bucket", algorithm_config: { rps: 2 } } as const;
  const all = {
    name: "all",
    limit_keys: ["ip:address", "header:X-Api-Key"],
    match: { "jwt:plan": "pro", "query:beta": true },
    algorithm: "fixed_window",
    algorithm_config: { rate: 3, period: "1m", capacity: 4, maxReserved: 5, start: "first request", shards: 2 },
    cost: { source: "query:n", default: 2, max: 3 },
    tiers: { by: "jwt:plan", settings: { pro: { rate: 6, period: "2m" } } },
    reserve: true,
    shadow: true,
    onStoreError: { local: 0.5 },
    block: { after: 3, for: ["1m", "10m"], within: "1h" },
  } as const;
  const fallback_limit = {
    ...least,
    name: "other",
    onStoreError: "deny",
    cost: 2,
    block: { after: 1, for: "1s" },
  } as const;
  const token = { kind: "token bucket", rate: 2, period: 1000, capacity: 2, shards: 1 };
  const window = { kind: "fixed window", start: "first request", shards: 2 };
  const plan = { source: "jwt", name: "plan" };
  const plain = { keys: [], matches: [], reserve: false, shadow: false, limit: { config: token, grantable: 2 } };
  const checked = {
    rules: [
      { ...plain, name: "least", cost: { default: 1, min: 1, max: 1 } },
      {
        name: "all",
        keys: [
          { source: "ip", name: "address" },
          { source: "header", name: "x-api-key" },
        ],
        matches: [
          { at: plan, equals: "pro" },
          { at: { source: "query", name: "beta" }, equals: "true" },
        ],
        cost: { stated: { source: "query", name: "n" }, default: 2, min: 1, max: 3 },
        reserve: true,
        limit: { config: { ...window, rate: 3, period: 60_000, capacity: 4, maxReserved: 5 }, grantable: 9 },
        tiers: {
          by: plan,
          settings: [
            {
              name: "pro",
              limit: { config: { ...window, rate: 6, period: 120_000, capacity: 6 }, grantable: 2 ** 40 },
            },
          ],
        },
        shadow: true,
        onStoreError: { local: 0.5 },
        block: { after: 3, for: [60_000, 600_000], within: 3_600_000 },
      },
    ],
    fallback: {
      ...plain,
      name: "other",
      cost: { default: 2, min: 2, max: 2 },
      onStoreError: "deny",
      block: { after: 1, for: [1000], within: 86_400_000 },
    },
    problems: [],
  };
  expect(examine({ rules: [least, all], fallback_limit })).toStrictEqual(checked);
});

describe("documents with mistakes", () => {
  test.each(INVALID)("$about: the messages equal those of the native Rust check", ({ document, text, sentences }) => {
    const found = checkPolicies(text ?? JSON.stringify(document));
    expect(found.map(({ message }) => message)).toEqual(sentences);
    if (text === undefined) expect(checkPolicies(document as object)).toEqual(found);
  });

  test.each(INVALID.filter(({ structural }) => structural))("$about: the schema refuses it too", ({ document }) => {
    expect(fits(document)).toBe(false);
  });

  test("throw one InputError with all problems", () => {
    const mistaken = { rules: [{ ...PLANS.rules[0], algorithm_config: { rps: -1, brust: 5 } }] };
    const failed = (() => {
      try {
        return definePolicies(mistaken);
      } catch (error) {
        return error;
      }
    })() as PolicyError;
    expect(failed).toBeInstanceOf(PolicyError);
    expect(isInputError(failed)).toBe(true);
    expect(failed.problems.map(({ rule, name, path, got, hint }) => ({ rule, name, path, got, hint }))).toEqual([
      { rule: 0, name: "enterprise", path: "rules[0].algorithm_config.brust", got: "5", hint: "did you mean `burst`?" },
      { rule: 0, name: "enterprise", path: "rules[0].algorithm_config.rps", got: "-1", hint: undefined },
    ]);
    expect(failed.message.split("\n")).toHaveLength(3);
    expect(failed.message).toMatch(/^the policy document has 2 mistakes:\n {2}rule 0 "enterprise": /);
  });

  test("values that JSON lacks are named; undefined is absent; inherited fields are ignored", () => {
    const found = (config: object) =>
      checkPolicies({ rules: [{ ...PLANS.rules[0], algorithm_config: config }] }).map(({ got }) => got);
    expect(found({ rps: 1, burst: undefined })).toEqual([]);
    expect(found(Object.assign(Object.create({ brust: 1 }) as object, { rps: 1 }))).toEqual([]);
    expect(found({ rps: Number.NaN, burst: Number.POSITIVE_INFINITY })).toEqual(["NaN", "Infinity"]);
    expect(found({ rps: 1n, burst: () => 1, shards: Symbol("a") })).toEqual(["a bigint", "a function", "a symbol"]);
    const circle: Record<string, unknown> = { rps: 1 };
    circle["burst"] = circle;
    expect(found(circle)).toEqual(["an object"]);
    expect(Object.keys(Object.prototype)).toEqual([]);
  });

  test("an object of a class without fields of its own is a mistake: as an empty `match` the rule would match every request", () => {
    const got = "an object without fields of its own, such as a Map or a Date; pass a plain object";
    const foreign = there<object>("new Map([['header:x-plan', 'free']])");
    for (const match of [
      new Map([["header:x-plan", "free"]]),
      new Set(),
      new Date(0),
      foreign,
      new Headers({ a: "b" }),
    ]) {
      const found = checkPolicies({ rules: [{ ...PLANS.rules[0], match }] });
      expect(found.map((problem) => [problem.path, problem.got])).toEqual([["rules[0].match", got]]);
    }
    for (const match of [{}, Object.create(null), there<object>("({})"), new Plan()]) {
      expect(checkPolicies({ rules: [{ ...PLANS.rules[0], match }] })).toEqual([]);
    }
    expect(checkPolicies(new Map([["rules", []]])).map(({ message }) => message)).toEqual([
      expect.stringMatching(/^`document` must be an object with .*; got an object without fields of its own/),
    ]);
  });

  test("a condition that is undefined is a mistake: without it the rule would match every request", () => {
    const found = (rule: object) => checkPolicies({ rules: [{ ...PLANS.rules[0], ...rule }] });
    expect(found({ match: { "header:x-plan": undefined } }).map(({ path, got }) => [path, got])).toEqual([
      ['rules[0].match["header:x-plan"]', "undefined"],
    ]);
    expect(found({ match: undefined, cost: undefined, unknown: undefined })).toEqual([]);
    expect(found({ tiers: { by: "jwt:plan", settings: { free: undefined } } }).map(({ path }) => path)).toEqual([
      "rules[0].tiers.settings.free",
    ]);
  });

  test("a byte order mark, which editors on Windows write, is no mistake", () => {
    const text = JSON.stringify({ rules: [{ ...PLANS.rules[0], name: "a b" }] });
    expect(checkPolicies(`\uFEFF${JSON.stringify(PLANS)}`)).toEqual([]);
    expect(checkPolicies(`\uFEFF${text}`)).toEqual(checkPolicies(text));
  });

  test("a text of the document is shown without sequences that a terminal obeys, and marks that reverse text", () => {
    const name = "a\u001b[2J\u009b2J\u007f\u2028\u202eb\u2066é漢";
    const shown = String.raw`"a\u001b[2J\u009b2J\u007f\u2028\u202eb\u2066é漢"`;
    const problems = checkPolicies({ rules: [{ ...PLANS.rules[0], name, [name]: 1 }] });
    expect(problems.map(({ message }) => message)).toEqual([
      expect.stringContaining(`: \`[${shown}]\` must be absent: `),
      expect.stringMatching(/^rule 0 "[ -~é漢…]+": `name` must be /),
    ]);
    expect(problems[1]?.got).toBe(shown);
    expect(checkPolicies('{\n  "a": \u001b[2J\u202e }')[0]?.message).toMatch(/^[ -~]+$/);
  });

  test("of a URL only the scheme is shown, since it may have a password", () => {
    const url = "redis://app:hunter2@localhost/0";
    const problems = checkPolicies({
      store: url,
      [url]: 1,
      rules: [{ ...PLANS.rules[0], name: url, reserve: "a /b://c" }],
    });
    expect(problems).toHaveLength(4);
    expect(problems.map(({ message }) => message).join()).not.toContain("hunter2");
    expect(problems.map(({ got }) => got)).toEqual(['"redis://…"', "1", '"redis://…"', '"a /b://c"']);
  });

  test("text that is not JSON is one mistake", () => {
    const [problem, ...others] = checkPolicies("{");
    expect(problem?.message).toMatch(/^`document` must be JSON; got /);
    expect(others).toEqual([]);
  });
});

/** An object of a class whose fields are a condition. */
class Plan {
  "header:x-plan" = "free";
}

describe("large documents", () => {
  const unknown = (fields: number) => Object.fromEntries(Array.from({ length: fields }, (_, i) => [`limt_${i}`, i]));

  test("report the first 1000 mistakes, and the number of the others", () => {
    const rules = Array.from({ length: 100 }, () => unknown(1000));
    const problems = checkPolicies({ rules });
    expect(problems).toHaveLength(1001);
    expect(problems[1000]?.message).toMatch(
      /^`document` must be free of mistakes, of which the first 1000 are listed; got 100\d00$/,
    );
    expect(checkPolicies(JSON.stringify({ rules }))).toEqual(problems);
    expect(() => definePolicies({ rules } as never)).toThrow(/^the policy document has more than 1000 mistakes:\n/);
  });

  test("repeat at most 65 characters of a rule's name in each problem", () => {
    const problems = checkPolicies({ rules: [{ ...unknown(900), name: "n".repeat(100_000) }] });
    expect(Math.max(...problems.map(({ name = "" }) => name.length))).toBe(65);
    expect(problems.length).toBeGreaterThan(900);
  });

  test("with too many fields and a duplicate report only the number of fields", () => {
    const text = `{"rules":[{${Array.from({ length: 2000 }, (_, i) => `"f${i}":1,"f${i}":2`).join()}}]}`;
    expect(repeated(text)).toHaveLength(2000);
    expect(checkPolicies(text).map(({ message }) => message)).toEqual([
      expect.stringMatching(/^rule 0: `rules\[0\]` must be an object of at most 1000 fields; got 2000 of them$/),
    ]);
  });

  test.each(["\n", "x", 'x\\", "rules": '])("have texts of any length, such as of %j", (part) => {
    const value = part.repeat(20_000_000 / part.length);
    const text = `{"rules":[],"a":${JSON.stringify(value)},"rules":[]}`;
    expect(repeated(text)).toEqual([["rules"]]);
  });

  test("report no duplicate field that is deeper than the check reads", () => {
    const nested = (depth: number) => `${'{"a":'.repeat(depth)}{"b":1,"b":2}${"}".repeat(depth)}`;
    expect([repeated(nested(31)).length, repeated(nested(32)).length]).toEqual([1, 0]);
  });
});

describe("duplicate fields", () => {
  test("are found with their paths in any text", () => {
    expect(repeated('{"a":1,"b":[{"c":"a\\",\\"a","c":2},{"c":3}],"a":{"x":1},"d":{"a":[],"a":{}}}')).toEqual([
      ["b", 0, "c"],
      ["a"],
      ["d", "a"],
    ]);
    expect(repeated('{"\\u0061":1,"a":2}')).toEqual([["a"]]);
  });

  test("never occur in the output of JSON.stringify; one that is inserted is found at its path", () => {
    const names = fc.constantFrom("a", 'b"', "c\\", "{", "[,", "__proto__", "");
    const value = fc.jsonValue({ maxDepth: 3 });
    fc.assert(
      fc.property(fc.dictionary(names, value), names, value, (object, name, other) => {
        expect(repeated(JSON.stringify(object, undefined, 1))).toEqual([]);
        const rest = JSON.stringify(object).slice(1);
        const twice = `{${JSON.stringify(name)}:${JSON.stringify(other)}${rest === "}" ? "" : ","}${rest}`;
        expect(repeated(twice)).toEqual(Object.hasOwn(object, name) ? [[name]] : []);
      }),
      { numRuns: 500 },
    );
  });
});

test.each([
  ["the bytes of a file", Buffer.from("{}"), 'bytes; read the file as text: readFileSync(path, "utf8")'],
  ["a promise", Promise.resolve({}), "a promise; `await` it first"],
  ["a promise of another realm", there<object>("Promise.resolve({})"), "a promise; `await` it first"],
])("%s in place of a document is one mistake with the remedy", (_, document, got) => {
  const message = `\`document\` must be an object, or the JSON text of one; got ${got}`;
  expect(checkPolicies(document).map((problem) => problem.message)).toEqual([message]);
});

test("an object without a prototype, or of another realm, is a document", () => {
  const rule = { name: "api", limit_keys: [], algorithm: "token_bucket", algorithm_config: { rps: 1 } };
  const bare = (value: object) => Object.assign(Object.create(null), value);
  expect(checkPolicies(bare({ rules: [bare(rule)] }))).toEqual([]);
  const foreign = there<typeof JSON.parse>("JSON.parse")(JSON.stringify({ rules: [rule] }));
  expect(foreign).not.toBeInstanceOf(Object);
  expect(checkPolicies(foreign)).toEqual([]);
});
