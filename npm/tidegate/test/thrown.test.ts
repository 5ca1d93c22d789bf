/** Errors of clients that cannot be read, or are too long to be logged: the call ends as with any other error. */
import { setImmediate as turn } from "node:timers/promises";
import { inspect } from "node:util";
import { expect, test, vi } from "vitest";
import { defineLimits, type Store, StoreError } from "../src/index.ts";
import { postgres } from "../src/stores/postgres.ts";
import { redis } from "../src/stores/redis.ts";
import { sqlite } from "../src/stores/sqlite.ts";
import { behind } from "./behind.ts";
import { table } from "./swap-table.ts";

const configs = { one: { kind: "token bucket", rate: 10, period: 60_000 } } as const;

/** An error whose `field` throws. */
function unreadable(field: string): unknown {
  return Object.defineProperty(new Error("down"), field, {
    get() {
      throw new TypeError(`no ${field}`);
    },
  });
}
function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

const STORES: Readonly<Record<string, (fail: () => Promise<never>) => Store>> = {
  redis: (fail) => redis({ eval: fail, evalsha: fail }),
  postgres: (fail) => postgres({ query: fail }),
  "a store that compares and swaps": (fail) => table({ read: fail }).store,
  "a store of the app": (fail) => behind(fail, "rows"),
};

test.each(
  Object.keys(STORES).flatMap((name) => [
    ...["message", "name", "code", "cause", "errors", "constructor"].map(
      (field) => [name, field, () => unreadable(field)] as const,
    ),
    [name, "proxy", revoked] as const,
    [
      name,
      "proxy that is the cause of the cause",
      () => new Error("a", { cause: new Error("b", { cause: revoked() }) }),
    ] as const,
  ]),
)(
  "%s, whose client rejects with an error that cannot be read (%s): the call is degraded, with a line in the log",
  async (name, _, make) => {
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    const error = vi.fn();
    const fail = () => Promise.reject(make());
    const limits = defineLimits(configs, {
      store: (STORES[name] as (typeof STORES)[string])(fail),
      timeout: 60_000,
      log: { error, info: () => {} },
    });
    const decision = await limits.limit("one", { key: "a" });
    expect(decision).toMatchObject({ ok: false, degraded: true });
    expect(decision.cause).toBeInstanceOf(StoreError);
    expect(String(decision.cause)).toContain("an error that cannot be read");
    await turn();
    process.off("unhandledRejection", unhandled);
    expect(unhandled).not.toHaveBeenCalled();
    expect(error).toHaveBeenCalledOnce();
    expect(error.mock.calls[0]?.[1]).toBeInstanceOf(Error);
  },
);

const refused = () => fetch("https://app:hunter2@localhost:1/pipeline") as Promise<never>;

test.each([
  ["redis", () => redis({ eval: refused, evalsha: refused })],
  ["sqlite", () => sqlite({ execute: refused })],
])(
  "%s, whose client has a URL with a password, which `fetch` refuses: the password is in no error and no log",
  async (_, open) => {
    const error = vi.fn();
    const limits = defineLimits(configs, { store: open(), timeout: 60_000, log: { error, info: () => {} } });
    const { cause } = await limits.limit("one", { key: "a" });
    expect(String(cause)).toContain("a URL that includes credentials");
    expect(inspect([cause, error.mock.calls])).not.toContain("hunter2");
  },
);

test("of a message of megabytes, such as that of an ORM which has all values of a statement, a part is kept and logged", async () => {
  const error = vi.fn();
  const store = behind(() => Promise.reject(new Error(`Failed query: ${"x".repeat(5_000_000)}`)), "rows");
  const { cause } = await defineLimits(configs, { store, log: { error, info: () => {} } }).limit("one");
  expect((cause as Error).message).toMatch(/^rows: take of "one" failed: Failed query: x{1900,2100}…$/);
  const [line, logged] = error.mock.calls[0] as [string, unknown];
  expect(line.length).toBeLessThan(3000);
  expect(logged).toMatch(/^Failed query: x{1900,2100}…$/);
});

test("a message of several lines, such as that of an ORM, is one line in a StoreError, without sequences that a terminal obeys", async () => {
  const error = vi.fn();
  const store = behind(
    () => Promise.reject(new Error("\nInvalid query:\r\n  down \u001b[2J\u0085\u2028at 7\n")),
    "rows",
  );
  const { cause } = await defineLimits(configs, { store, log: { error, info: () => {} } }).limit("one");
  const shown = 'rows: take of "one" failed: Invalid query: down ?[2J? at 7';
  expect((cause as Error).message).toBe(shown);
  expect(error.mock.calls[0]?.[0]).toContain(`${shown}; `);
});

test("a key of a client writes no line of its own into a log, and no sequence that a terminal obeys", async () => {
  const key = "ann\n\u001b[2J\u009b2J\u007f\u2028\u2029\u202eeve\u2066\ud800";
  const error = vi.fn();
  const store = behind(() => Promise.reject(new Error("down")), "rows");
  await defineLimits(configs, { store, log: { error, info: () => {} } }).limit("one", { key });
  const shown = String.raw`take of "one:ann\n\u001b[2J?2J????eve?\ud800" failed`;
  expect(error.mock.calls[0]?.[0]).toContain(shown);
});

test("a value of a client in the message of an InputError has no sequence that a terminal obeys, and no mark that turns text", () => {
  const count = "ann\n\u001b[2J\u009b2J\u007f\u202eeve\u2066é漢\ud800";
  const shown = String.raw`got "ann\n\u001b[2J?2J??eve?é漢\ud800"`;
  expect(() => defineLimits(configs).limit("one", { count: count as unknown as number })).toThrow(shown);
});

test("the name of an unknown option is cut in the message of an InputError, and has no sequence that a terminal obeys", () => {
  const limits = defineLimits(configs);
  const name = `\u001b[2J\n\u202e${"x".repeat(1_000_000)}`;
  const attempts = [
    () => limits.limit("one", { [name]: 1 }),
    () => defineLimits({ one: { ...configs.one, [name]: 1 } }),
    () => defineLimits(configs, { [name]: 1 }),
  ];
  for (const attempt of attempts) {
    expect(attempt).toThrow(/^`\\u001b\[2J\\n\?x+…` must be absent: .{1,200}; got 1/);
    expect(attempt).toThrow(expect.objectContaining({ field: expect.stringMatching(/^.{60,100}$/) }));
  }
  expect(() => limits.limit("one", { 'a"b\\c': 1 } as object)).toThrow('`a\\"b\\\\c` must be absent: limit has key');
});

test("the fields of an object that was passed instead of a client are cut, and have no sequence that a terminal obeys", () => {
  const given = { [`\u001b[2J${"x".repeat(1_000_000)}`]: 1 };
  expect(() => redis(given as never)).toThrow(/^`client` must be .{1,300}; got an object with \\u001b\[2Jx+…$/);
  expect(() => redis({ host: "a", port: 1 } as never)).toThrow(/; got an object with host, port$/);
});
