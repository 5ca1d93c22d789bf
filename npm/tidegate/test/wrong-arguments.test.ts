/**
 * Calls every public function, class and method with wrong arguments: each throws an `InputError`, or works. The list is
 * `exports` of package.json, so a new function without a row in `CALLS` fails.
 */
import { existsSync, readFileSync } from "node:fs";
import { createElement } from "react";
import { renderToString } from "react-dom/server";
import { describe, expect, test } from "vitest";
import { defineLimits, isInputError, MINUTE } from "../src/index.ts";
import { definePolicies } from "../src/policies/index.ts";
import { remoteLimits } from "../src/react/index.ts";

type Callable = (...args: never[]) => unknown;

/** Entries whose arguments have tests of their own. */
const ELSEWHERE = new Set(["./redis", "./postgres", "./shared", "./file", "./convex", "./durable-object", "./cli"]);
/** Errors and classes that the package constructs; and what a framework calls: plugins, decorators and modules. */
const NOT_CALLED = /^(\w+Error|layers|pool|rateLimitPlugin|RateLimit(Decision|Guard|Module)?|SkipRateLimit)$/;

const bucket = { kind: "token bucket", rate: 10, period: MINUTE } as const;
const limits = () => defineLimits({ api: bucket });
const headers = new Headers();
const decision = limits().check("api");
const denied = (() => {
  const { api } = { api: limits() };
  api.limit("api", { count: 10 });
  return api.limit("api");
})();
const document = { rules: [{ name: "api", limit_keys: [], algorithm: "token_bucket", algorithm_config: { rps: 1 } }] };
const none = () => {};
const kv = { get: async () => null, put: async () => {}, delete: async () => {} };
const denoKv = { get: none, atomic: none, delete: none };
const state = { value: 1, ts: 1 };
const meter = {
  createCounter: () => ({ add: none }),
  createHistogram: () => ({ record: none }),
  createObservableCounter: () => ({ addCallback: none }),
};
const middleware = () => [limits(), { name: "api", client: { trust: 1 } }, none];

/** Valid arguments, of which each in turn is replaced by an invalid one. */
const CALLS: Record<string, () => unknown[]> = {
  adaptiveRate: () => [{ floor: 1, ceiling: 10, period: MINUTE, latency: 100 }],
  addressKey: () => ["192.0.2.1", {}],
  appendRateLimitHeaders: () => [headers, decision, {}],
  boundedKey: () => ["key"],
  checkPolicies: () => [document],
  clientIp: () => [{ address: "192.0.2.1", headers }, {}],
  concurrent: () => [none, 2, {}],
  createFetch: () => [{ fetch: async () => new Response() }],
  decisionOf: () => [new Request("http://localhost")],
  decode: () => [new Uint8Array(16)],
  decodeText: () => ["1 1"],
  defineLimits: () => [{ api: bucket }, {}],
  definePolicies: () => [document, {}],
  denoKv: () => [denoKv, {}],
  dynamodb: () => [
    { getItem: none, putItem: none, deleteItem: none, transactGetItems: none, transactWriteItems: none },
    {},
  ],
  encode: () => [state],
  encodeText: () => [state],
  evaluate: () => [state, bucket, { now: 1 }],
  expressRateLimitStore: () => [{}],
  fakeClock: () => [1],
  fastifyRateLimitStore: () => [{}],
  honoRateLimiterStore: () => [{}],
  isInputError: () => [new Error()],
  isQueueError: () => [new Error()],
  isRateLimitError: () => [new Error()],
  isStoreError: () => [new Error()],
  jitter: () => [denied, { key: "a" }],
  keysOfPolicies: () => [definePolicies(document)],
  Limit: () => ["api", bucket],
  limitNodeStream: () => [{ bytesPerSecond: 1 }],
  limitNodeObjectStream: () => [{ perSecond: 1 }],
  limitObjectStream: () => [{ perSecond: 1 }],
  limitStream: () => [{ bytesPerSecond: 1 }],
  memcached: () => [{ gets: none, cas: none, add: none, delete: none, del: none }, {}],
  memory: () => [{}],
  metrics: () => [meter, {}],
  mongodb: () => [{ db: none, startSession: none }, {}],
  mysql: () => [{ query: none, execute: none }, {}],
  observe: () => [limits(), none],
  policyTarget: () => [definePolicies(document), { name: "api" }],
  problem: () => [denied, {}],
  project: () => [state, bucket, 1],
  publish: () => [{ hasSubscribers: false, publish: none }],
  rateLimit: middleware,
  rateLimitAction: () => [limits(), { name: "api", key: () => "a" }, async () => 1],
  rateLimitBinding: () => [limits(), "api"],
  rateLimitGuard: () => [limits(), { name: "api" }, class extends Error {}],
  rateLimitHeaders: () => [denied, {}],
  rateLimitMiddleware: () => [limits(), { name: "api", client: { trust: 1 } }],
  readRateLimit: () => [headers, 1],
  remoteLimits: () => [() => ({ ...state, config: bucket, now: 1 })],
  semaphore: () => [1],
  singleFlight: () => [none, {}],
  spend: () => [limits(), { limits: ["api"], estimate: 1 }, async () => 1],
  sqlite: () => [{ prepare: () => ({ all: (...values: string[]) => [values], run: none }) }, {}],
  statusOf: () => [denied, {}],
  throttle: () => [none, bucket, {}],
  throttlerStorage: () => [{}],
  transactional: () => [{ name: "map", transaction: none }],
  storeSuite: () => [{ test: none, describe: none, create: none, vectors: {} }],
  tupleKey: () => ["a", "b"],
  useRateLimit: () => [
    "api",
    { from: remoteLimits(() => new Promise(none)), initial: { ...state, config: bucket, now: 1 } },
  ],
  webStorage: () => [{ name: "a" }],
  workersKv: () => [kv, {}],
};

/** Data that a caller read elsewhere: if it is not a state, the documented error is a `TypeError`. */
const DATA = new Set(['decodeText, argument 0 of "text"']);

/** Objects whose methods are called too: the names of the functions that return them. */
const RESULTS = new Set([
  "adaptiveRate",
  "defineLimits",
  "definePolicies",
  "expressRateLimitStore",
  "fakeClock",
  "observe",
  "rateLimitBinding",
  "remoteLimits",
  "semaphore",
]);
/** Methods that only the package itself calls. */
const INTERNAL = new Set(["constructor", "select", "watch", "wake", "whenFree", "here", "clearTimeout"]);

const WRONG: readonly [string, unknown][] = [
  ["undefined", undefined],
  ["null", null],
  ["true", true],
  ["7", 7],
  ["NaN", Number.NaN],
  ["1n", 1n],
  ['"text"', "text"],
  ["a symbol", Symbol("a")],
  ["{}", {}],
  ["[]", []],
  ["[null]", [null]],
  ["an object without prototype", Object.create(null)],
  ["a function", () => {}],
  ["a Proxy of a function", new Proxy(() => {}, {})],
];

/** What it throws, synchronously or by a promise. */
async function failureOf(call: () => unknown): Promise<unknown> {
  try {
    const result = call();
    // A promise that is still pending has accepted its arguments.
    await Promise.race([result, new Promise((resolve) => setImmediate(resolve))]);
    return undefined;
  } catch (error) {
    return error;
  }
}

const invoke = (name: string, fn: Callable, args: readonly unknown[]): unknown => {
  if (name === "useRateLimit") {
    const Component = (): null => {
      fn(...(args as never[]));
      return null;
    };
    return renderToString(createElement(Component));
  }
  if (/^class\b/.test(Function.prototype.toString.call(fn))) {
    return new (fn as never as new (...given: readonly unknown[]) => unknown)(...args);
  }
  return fn(...(args as never[]));
};

const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  exports: Record<string, string | { default: string }>;
};
/** The entry's file, by the build's rule: `dist/a.js` is made from `src/a.ts` or `src/a/index.ts`. */
const source = (target: string): string => {
  const path = target.replace("./dist/", "../src/").replace(/\.js$/, "");
  return existsSync(new URL(`${path}.ts`, import.meta.url)) ? `${path}.ts` : `${path}/index.ts`;
};
const entries = Object.entries(manifest.exports).flatMap(([entry, target]) =>
  typeof target === "string" || ELSEWHERE.has(entry) ? [] : [[entry, source(target.default)] as const],
);

/** Failures other than `InputError`, one line each. */
async function untyped(what: string, call: (wrong: unknown) => unknown): Promise<string[]> {
  const lines: string[] = [];
  for (const [label, wrong] of WRONG) {
    const error = await failureOf(() => call(wrong));
    if (error !== undefined && !isInputError(error) && !DATA.has(`${what} of ${label}`))
      lines.push(`${what} of ${label}: ${String(error)}`);
  }
  return lines;
}

const replaced = (args: readonly unknown[], position: number, wrong: unknown): unknown[] =>
  args.map((right, i) => (i === position ? wrong : right));

const plainFields = (value: unknown): string[] =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype
    ? Object.keys(value)
    : [];

/** The methods of a returned object, with a wrong first argument, and with a wrong second one after a name. */
async function wrongMethods(name: string, make: () => unknown): Promise<string[]> {
  const lines: string[] = [];
  const names = new Set<string>();
  for (
    let part = make() as object | null;
    part !== null && part !== Object.prototype;
    part = Object.getPrototypeOf(part)
  ) {
    for (const [method, { value }] of Object.entries(Object.getOwnPropertyDescriptors(part))) {
      if (typeof value === "function" && !INTERNAL.has(method)) names.add(method);
    }
  }
  expect(names.size).toBeGreaterThan(0);
  for (const method of names) {
    const call = (...args: unknown[]) => (make() as Record<string, Callable>)[method]?.(...(args as never[]));
    lines.push(...(await untyped(`${name}().${method}, argument 0`, (wrong) => call(wrong))));
    lines.push(...(await untyped(`${name}().${method}, argument 1`, (wrong) => call("api", wrong))));
  }
  return lines;
}

describe.each(entries)("%s", (_, path) => {
  test("throws an InputError for wrong arguments", async () => {
    const module = (await import(/* @vite-ignore */ path)) as Record<string, unknown>;
    const lines: string[] = [];
    for (const [name, fn] of Object.entries(module)) {
      if (typeof fn !== "function" || NOT_CALLED.test(name)) continue;
      const args = CALLS[name];
      if (args === undefined) throw new Error(`${name} has no row in CALLS, with valid arguments`);
      expect(await failureOf(() => invoke(name, fn as Callable, args()))).toBeUndefined();
      for (const [position, right] of args().entries()) {
        const call = (wrong: unknown) => invoke(name, fn as Callable, replaced(args(), position, wrong));
        lines.push(...(await untyped(`${name}, argument ${position}`, call)));
        for (const field of plainFields(right)) {
          const withField = (wrong: unknown) => call({ ...(right as object), [field]: wrong });
          lines.push(...(await untyped(`${name}, argument ${position}, field ${field}`, withField)));
        }
      }
      if (RESULTS.has(name)) lines.push(...(await wrongMethods(name, () => invoke(name, fn as Callable, args()))));
    }
    expect(lines).toEqual([]);
  });
});
