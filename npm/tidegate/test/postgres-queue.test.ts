/** Which requests to PostgreSQL leave together, and what one that fails says of the others: on a client that the test answers. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Limit } from "../src/limit/limit.ts";
import { type PostgresOptions, postgres } from "../src/stores/postgres.ts";

const limit = new Limit("api", { kind: "token bucket", rate: 1, period: 1000 });
const take = (key: string) => ({ op: "take", limit, key, count: 1, reserve: false }) as const;

// No call cleans up, as one of 128 that make a row does.
beforeEach(() => void vi.spyOn(Math, "random").mockReturnValue(0.5));
const ends: (() => void)[] = [];
afterEach(() => {
  vi.restoreAllMocks();
  // What a test leaves would have its timeout, a minute, in the middle of another file.
  for (const end of ends.splice(0)) end();
});

/** What a statement on one row answers. */
const taken = () => `${Date.now()},0,${Date.now()}`;

/** A store on a client that keeps what it is sent, and answers when the test does. */
function open(options: PostgresOptions = {}) {
  const sent: { text: string; values: readonly unknown[]; answer(text: string): void; reject(error: unknown): void }[] =
    [];
  const client = {
    unsafe: (text: string, values: never[] = []) =>
      new Promise<unknown>((resolve, reject) => {
        ends.push(() => reject(new Error("closed")));
        sent.push({ text, values, answer: (answer) => resolve([{ answer }]), reject });
      }),
  };
  const store = postgres(client, { statementTimeout: "1m", ...options });
  /** Of each call: none, until the test ends. */
  const deadline = () => {
    const later = { at: Number.POSITIVE_INFINITY };
    ends.push(() => {
      later.at = 0;
    });
    return later;
  };
  const call = (key: string) => store.decide(take(key), undefined, deadline()).catch((error: unknown) => error);
  /** Expects the next statement: its function, its rows, and the ms that it waits for a lock. */
  const expected = async (statement: string, lock?: string) => {
    await vi.waitUntil(() => sent.length > 0, { timeout: 60_000 });
    const { text, values, answer, reject } = sent.shift() as (typeof sent)[number];
    const [, name] = /"tidegate"\.(?!in_time)(\w+)/.exec(text) ?? [];
    const rows = [...String(values[0]).matchAll(/api:(\w)/g)].map(([, key]) => key);
    expect(`${name} ${rows.join("")}`).toBe(statement);
    if (lock !== undefined) expect(values.at(-2)).toBe(lock);
    const fails = (message: string, code: string) => () => reject(Object.assign(new Error(message), { code }));
    const idle = fails("terminating connection due to idle-session timeout", "57P05");
    return { answer, idle, locked: fails("lock timeout", "55P03"), full: fails("too many connections", "53300") };
  };
  const look = (key: string) => store.decide({ ...take(key), op: "check" }, undefined, deadline()).catch(() => {});
  const several = (keys: readonly string[]) =>
    store.decideAll(keys.map(take), undefined, deadline()).catch((error: unknown) => error);
  const turn = () => new Promise<void>((resolve) => setTimeout(resolve, 0));
  /** Answers the first statement, which is on the rows `a` and `b`, so that `a` counts as locked. */
  const lockA = async () => {
    (await expected("call_rows ab", "20")).locked();
    (await expected("locked_rows ab")).answer("1");
    (await expected("take_row b", "20")).answer(taken());
  };
  return { sent, store, call, look, several, turn, expected, lockA };
}

test("a request on a row of a statement that is out waits for it, and one on another row does not", async () => {
  const { sent, call, turn } = open();
  const first = call("a");
  await turn();
  const second = call("a");
  await turn();
  expect(sent).toHaveLength(1);
  const other = call("b");
  await turn();
  expect(sent.map(({ values }) => String(values[0]))).toEqual(["api:a", "api:b"]);
  sent[0]?.reject(new Error("gone"));
  await first;
  await turn();
  expect(sent.map(({ values }) => String(values[0]))).toEqual(["api:a", "api:b", "api:a"]);
  for (const { reject } of sent) reject(new Error("gone"));
  await Promise.all([second, other]);
});

test("a request waits for those before it on its row that wait for another row", async () => {
  const { sent, call, several, turn } = open();
  const calls = [call("a")];
  await turn();
  calls.push(several(["a", "b"]), call("b"));
  await turn();
  expect(sent.map(({ values }) => String(values[0]))).toEqual(["api:a"]);
  sent[0]?.reject(new Error("gone"));
  await turn();
  expect(sent).toHaveLength(2);
  sent[1]?.reject(new Error("gone"));
  await Promise.all(calls);
});

test("the rows of a statement are locked in the order of the table, whatever the order of the calls", async () => {
  const { sent, call, turn } = open();
  const calls = ["z", "ü", "a", "b"].map(call);
  await turn();
  expect(sent.map(({ values }) => values[0])).toEqual(['{"api:a","api:b","api:z","\\\\x6170693ac3bc"}']);
  sent[0]?.reject(new Error("gone"));
  await Promise.all(calls);
});

test("one row of 64 that fails costs the statements of a search, not one for each row", async () => {
  const { sent, call, turn } = open({ statements: 1 });
  const keys = Array.from({ length: 64 }, (_, i) => `k${i + 10}`);
  const calls = keys.map(call);
  const left = new Set(keys);
  let statements = 0;
  for (; left.size > 0; statements++) {
    await turn();
    const { values, reject } = sent.shift() as (typeof sent)[number];
    const rows = [...String(values[0]).matchAll(/k\d\d/g)].map(([key]) => key);
    if (rows.length > 1 && rows.includes("k42")) reject(Object.assign(new Error("overflow"), { code: "22003" }));
    else {
      for (const row of rows) left.delete(row);
      reject(new Error(`of ${rows.length}`));
    }
  }
  expect(statements).toBe(13);
  const errors = (await Promise.all(calls)) as Error[];
  expect(String(errors[keys.indexOf("k42")])).toContain("of 1");
  expect(String(errors[0])).toContain("of 32");
});

test("where the server has no connection left, a call is sent again, and then one statement at a time", async () => {
  const { sent, call, turn, expected } = open();
  const calls = [call("a")];
  await turn();
  calls.push(call("b"));
  await turn();
  const a = await expected("take_row a");
  (await expected("take_row b")).full();
  calls.push(call("c"));
  const again = await expected("take_row b");
  a.answer(taken());
  await calls[0];
  await turn();
  expect(sent).toEqual([]);
  again.answer(taken());
  (await expected("take_row c")).answer(taken());
  expect(await Promise.all(calls)).toMatchObject(calls.map(() => ({ ok: true })));
});

test("a number that PostgreSQL cannot compute with is an error of its key, and any other one of the store", async () => {
  const { sent, call, turn } = open();
  const calls = [call("a"), call("b")];
  await turn();
  const outOfRange = Object.assign(new Error("value out of range: overflow"), { code: "22003" });
  sent[0]?.reject(outOfRange);
  // Nothing was written, so each is sent on its own.
  await turn();
  sent[1]?.reject(outOfRange);
  await turn();
  sent[2]?.reject(Object.assign(new Error("permission denied"), { code: "42501" }));
  expect(await Promise.all(calls)).toMatchObject([
    { scope: "key", identity: "api:a" },
    { scope: "store", identity: "api:b" },
  ]);
});

test("requests on locked rows leave apart: together those whose rows are free by now, else those on one row, which wait", async () => {
  const { sent, call, turn, expected } = open();
  const calls = ["a", "b", "c", "d"].map(call);
  (await expected("call_rows abcd", "20")).locked();
  (await expected("locked_rows abcd")).answer("1,2,3");
  (await expected("take_row d", "20")).answer(taken());
  (await expected("locked_rows abc")).answer("1,2,3");
  (await expected("take_row a", "80")).locked();
  (await expected("locked_rows a")).answer("1");
  (await expected("locked_rows abc")).answer("1");
  (await expected("call_rows bc", "20")).answer(`${Date.now()};,;,`);
  (await expected("take_row a", "80")).answer(taken());
  await Promise.all(calls);
  await turn();
  expect(sent).toEqual([]);
});

test("a call on one locked row waits for its lock, also behind a call on several rows, which does not", async () => {
  const { sent, call, several, expected } = open();
  const calls = [several(["a", "c"]), call("b")];
  (await expected("call_rows abc")).locked();
  (await expected("locked_rows acb")).answer("1,3");
  (await expected("locked_rows acb")).answer("1,3");
  (await expected("take_row b", "80")).answer(taken());
  expect(await calls[1]).toMatchObject({ ok: true });
  for (const { reject } of sent) reject(new Error("gone"));
});

test("a statement on a locked row is one of those that may be out", async () => {
  // The row counts as locked for a second.
  vi.spyOn(performance, "now").mockReturnValue(performance.now());
  const { sent, call, turn, expected, lockA } = open();
  const calls = ["a", "b"].map(call);
  await lockA();
  (await expected("take_row a", "80")).answer(taken());
  await Promise.all(calls);
  await turn();
  // The others would fill two statements.
  void call("a");
  for (let i = 0; i < 300; i++) void call(`k${i}`);
  await turn();
  expect(sent.map(({ text }) => /take_row|call_rows/.exec(text)?.[0]).sort()).toEqual(["call_rows", "take_row"]);
});

test("on one connection, statements on locked rows and those on others take turns", async () => {
  const { call, expected, lockA } = open({ statements: 1 });
  const calls = ["a", "b"].map(call);
  await lockA();
  (await expected("locked_rows a")).answer("");
  const ofLocked = await expected("take_row a", "5");
  calls.push(call("a"), call("c"));
  ofLocked.answer(taken());
  (await expected("take_row c", "20")).answer(taken());
  (await expected("locked_rows a")).answer("");
  (await expected("take_row a", "5")).answer(taken());
  await Promise.all(calls);
});

test("calls that waited on a row that is found locked leave with those before them", async () => {
  const { call, turn, expected } = open();
  const calls = ["a", "b"].map(call);
  const first = await expected("call_rows ab");
  calls.push(call("a"));
  await turn();
  first.locked();
  (await expected("locked_rows ab")).answer("1");
  (await expected("take_row b")).answer(taken());
  (await expected("call_rows a", "80")).answer(`${Date.now()};0;${Date.now()}`);
  await Promise.all(calls);
});

test("a check leaves with others on a locked row, unless a call on the row waits before it", async () => {
  const { call, look, expected, lockA } = open();
  const calls: Promise<unknown>[] = ["a", "b"].map(call);
  await lockA();
  const waits = await expected("take_row a", "80");
  calls.push(call("a"), look("a"));
  waits.answer(taken());
  const next = await expected("take_row a", "80");
  next.answer(taken());
  (await expected("read_rows a", "80")).answer(`${Date.now()};0;${Date.now()}`);
  await Promise.all(calls);
  const check = look("a");
  (await expected("read_rows a", "20")).answer(`${Date.now()};0;${Date.now()}`);
  await check;
});

test("a row counts as locked for a second after it was last found so", async () => {
  const begun = performance.now();
  const clock = vi.spyOn(performance, "now").mockReturnValue(begun);
  const { call, turn, expected, lockA } = open();
  const calls = ["a", "b"].map(call);
  await lockA();
  clock.mockReturnValue(begun + 999);
  (await expected("take_row a", "80")).answer(taken());
  await Promise.all(calls);
  await turn();
  clock.mockReturnValue(begun + 1001);
  const apart = call("a");
  (await expected("take_row a", "80")).answer(taken());
  await apart;
  await turn();
  const together = ["a", "b"].map(call);
  (await expected("call_rows ab", "20")).answer(`${Date.now()};0,0;${Date.now()},${Date.now()}`);
  await Promise.all(together);
});

test("more calls may wait than a function takes arguments, as two of limitMany are, also on a locked row", {
  timeout: 300_000,
}, async () => {
  const { call, several, expected } = open();
  void several(["a", "b"]);
  for (let i = 0; i < 150_000; i++) void call("a");
  (await expected("call_rows ab")).locked();
  (await expected("locked_rows ab")).answer("1");
  (await expected("locked_rows ab")).answer("1");
  (await expected("call_rows a", "80")).locked();
  (await expected("locked_rows a")).answer("1");
  await expected("locked_rows ab");
});

test("a call on another row does not wait for a statement that waits for a lock, however many calls are in that", async () => {
  const { sent, call, turn, expected, lockA } = open();
  const calls = ["a", "b", ...Array<string>(9).fill("a")].map(call);
  await lockA();
  const waits = await expected("call_rows a", "80");
  calls.push(call("c"));
  await turn();
  expect(sent).toHaveLength(1);
  (await expected("take_row c", "20")).answer(taken());
  waits.answer(`${Date.now()};${Array(10).fill(0)};${Array(10).fill(Date.now())}`);
  await Promise.all(calls);
});

test("a statement on a session that the server ends, as it was idle for too long, was not executed: it is sent again", async () => {
  const { call, expected } = open();
  const taken1 = call("a");
  for (let i = 0; i < 3; i++) (await expected("take_row a")).idle();
  (await expected("take_row a")).answer(taken());
  expect(await taken1).toMatchObject({ ok: true });
});

test("if that lasts until the deadline, the error is the server's, and counts as an outage", async () => {
  const { store, expected } = open();
  const deadline = { at: performance.now() + 60_000 };
  const late = store.decide(take("a"), undefined, deadline).catch((error: unknown) => error);
  const { idle } = await expected("take_row a");
  deadline.at = performance.now() - 1000;
  idle();
  expect(await late).toMatchObject({
    message: 'postgres: take of "api:a" failed: terminating connection due to idle-session timeout',
    scope: "store",
  });
});
