/** What the store of MySQL sends to write, on a client that the test answers. */
import { beforeEach, describe, expect, test, vi } from "vitest";
import { defineLimits } from "../src/index.ts";
import { Limit } from "../src/stores/index.ts";
import { mysql } from "../src/stores/mysql.ts";

const stock = { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 10 } as const;
/** The server's clock, s. */
const CLOCK = 5000;

beforeEach(() => void vi.useFakeTimers());

/** A client whose rows are absent, and what it sent to write. A read takes so many ms. */
function client(ms = 0) {
  const writes: { sql: string; values: unknown[] }[] = [];
  const query = async ({ sql }: { sql: string }, values: unknown[]) => {
    if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
    if (sql.includes("information_schema")) return [[[null]], []];
    if (sql.startsWith("SELECT")) return [[[1, CLOCK, ...(sql.match(/x'/g) ?? []).map(() => null)]], []];
    writes.push({ sql, values });
    return [{}, []];
  };
  return { client: { execute() {}, query } as never, writes };
}

test("several rows are locked in one order, whatever that of the requests, or two processes would deadlock", async () => {
  const { client: given, writes } = client();
  const limits = defineLimits({ stock }, { store: mysql(given) });
  const request = (key: string) => ({ name: "stock", key }) as const;
  for (const keys of ["abc", "cab"]) await limits.limitAll([...keys].map(request));
  const ids = writes.map(({ sql }) => sql.match(/(?<=x')\w+/g)?.slice(0, 3));
  expect(ids[0]).toEqual(["a", "b", "c"].map((key) => Buffer.from(`stock:${key}`).toString("hex")));
  expect(ids[1]).toEqual(ids[0]);
});

const call = { op: "take", limit: new Limit("stock", stock), key: "k", count: 1, reserve: false } as const;

test("the server refuses a write so late that its reply would come after the deadline", async () => {
  const { client: given, writes } = client();
  await mysql(given).decide(call, undefined, { at: performance.now() + 300 });
  // After a state and a time to keep it.
  expect(writes[0]?.values[2]).toBeCloseTo(CLOCK + 0.295, 6);
});

test("a call whose write the server would refuse by that is not sent beside others that have the time", async () => {
  const store = mysql(client(100).client);
  const take = (left: number) => store.decide(call, undefined, { at: performance.now() + left });
  const ended = async (calls: Promise<unknown>[]) => {
    const all = Promise.allSettled(calls);
    await vi.advanceTimersByTimeAsync(1000);
    return (await all).map(({ status }) => status);
  };
  // How long a read takes is known from two.
  for (let i = 0; i < 2; i++) await ended([take(1000)]);
  expect(await ended([take(230), take(1000)])).toEqual(["rejected", "fulfilled"]);
});

describe("a connection that the server has closed, as after wait_timeout, and that the pool still passed on", () => {
  /** The first statements of this kind fail with this error, before the client answers. */
  const closing = (kind: "SELECT @@" | "INSERT", errors: object[]) => {
    const { client: open, writes } = client();
    const sent: string[] = [];
    const query = async (options: { sql: string }, values: unknown[]) => {
      if (options.sql.startsWith(kind)) {
        sent.push(kind);
        const error = errors.shift();
        if (error !== undefined) throw Object.assign(new Error("closed"), error);
      }
      return (open as { query(...args: unknown[]): unknown }).query(options, values);
    };
    return {
      limits: defineLimits({ stock }, { store: mysql({ execute() {}, query } as never), log: false }),
      sent,
      writes,
    };
  };

  test.each([
    "ECONNRESET",
    "EPIPE",
    "PROTOCOL_CONNECTION_LOST",
    "ER_SOCKET_UNEXPECTED_CLOSE",
    "ER_CLIENT_INTERACTION_TIMEOUT",
    "ER_CONNECTION_KILLED",
  ])("%s: a read is sent again on another one", async (code) => {
    const { limits, sent, writes } = closing("SELECT @@", [{}, { code }]);
    // What connects before the first call.
    expect(await limits.limit("stock", { key: "k" })).toMatchObject({ ok: true, value: 9 });
    expect([sent.length, writes.length]).toEqual([3, 1]);
  });

  test("a read is sent no third time, nor after another error; a write is not sent again, as it may have been executed", async () => {
    const lost = { code: "ECONNRESET" };
    for (const [kind, errors, times] of [
      ["SELECT @@", [{}, lost, lost], 3],
      ["SELECT @@", [{}, { code: "ECONNREFUSED" }], 2],
      ["INSERT", [lost], 1],
    ] as const) {
      const { limits, sent, writes } = closing(kind, [...errors]);
      const { ok, cause } = await limits.limit("stock", { key: "k" });
      expect([ok, (cause as { scope: string }).scope, sent.length, writes.length]).toEqual([false, "store", times, 0]);
    }
  });
});
