/** The store over a host's transaction: one that begins, or begins again, after its call's deadline takes nothing. */
import { expect, onTestFinished, test, vi } from "vitest";
import { defineLimits, MINUTE, type State } from "../src/index.ts";
import { Limit, type Transaction, transactional } from "../src/stores/index.ts";

const bucket = { kind: "token bucket", rate: 10, period: MINUTE } as const;
const take = (key: string) => ({ op: "take", limit: new Limit("one", bucket), key, count: 1, reserve: false }) as const;
const LATE = "`transaction` ran its argument after the deadline; nothing was taken";

function rows() {
  const states = new Map<string, State>();
  const tx: Transaction = {
    get: (id) => states.get(id) ?? null,
    set: (id, state) => void states.set(id, state),
    delete: (id) => void states.delete(id),
  };
  return { states, tx };
}

test("a transaction that waited for a connection until its deadline takes nothing; one in time does", async () => {
  const { tx, states } = rows();
  const waiting: (() => void)[] = [];
  const connection = () => new Promise<void>((resolve) => waiting.push(resolve));
  const store = transactional({ name: "tx", transaction: (body) => connection().then(() => body(tx)) });
  const [early, late] = [{ at: performance.now() + MINUTE }, { at: performance.now() + MINUTE }];
  const inTime = store.decide(take("early"), 5000, early);
  const tooLate = store.decide(take("late"), 5000, late);
  late.at = performance.now() - 1;
  for (const resolve of waiting) resolve();
  expect(await inTime).toMatchObject({ ok: true, value: 9 });
  await expect(tooLate).rejects.toMatchObject({
    message: `tx: take of "one:late" failed: ${LATE}`,
    scope: "key",
    cause: { answered: false },
  });
  expect([...states.keys()]).toEqual(["one:early"]);
});

test("a transaction that is repeated after a conflict takes nothing after its deadline", async () => {
  const { tx, states } = rows();
  const deadline = { at: performance.now() + MINUTE };
  const store = transactional({
    name: "tx",
    async transaction(body) {
      await body({ ...tx, set: () => {} });
      deadline.at = performance.now() - 1;
      return body(tx);
    },
  });
  await expect(store.decide(take("k"), 5000, deadline)).rejects.toThrow(LATE);
  expect(states.size).toBe(0);
});

test("the error at the deadline states whether the transaction had begun", async () => {
  vi.useFakeTimers();
  const never = new Promise<never>(() => {});
  const causeOf = async (transaction: Parameters<typeof transactional>[0]["transaction"]) => {
    const limits = defineLimits(
      { one: bucket },
      { store: transactional({ name: "tx", transaction }), timeout: 10, log: false },
    );
    const decided = limits.limit("one", { key: "k" });
    await vi.advanceTimersByTimeAsync(10);
    const { cause } = await decided;
    expect(cause).toMatchObject({ scope: "store" });
    return (cause as Error).message;
  };
  expect(await causeOf(() => never)).toBe(
    'tx: take of "one:k" failed: `transaction` did not run its argument before the deadline: no connection was free, or the database did not answer',
  );
  expect(await causeOf((body) => body({ ...rows().tx, get: () => never }))).toBe(
    'tx: take of "one:k" failed: no answer within 10 ms',
  );
});

test("a transaction that rejects before its argument has ended, as that of better-sqlite3, leaves no unhandled rejection", async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  process.on("unhandledRejection", note);
  onTestFinished(() => void process.off("unhandledRejection", note));
  const store = transactional({
    name: "tx",
    async transaction(body) {
      void body({ ...rows().tx, get: () => Promise.reject(new Error("the transaction has ended")) });
      throw new TypeError("Transaction function cannot return a promise");
    },
  });
  await expect(store.decide(take("k"), 5000)).rejects.toThrow("Transaction function cannot return a promise");
  // Node.js reports it after the turn in which it is left.
  await new Promise((resolve) => setTimeout(resolve, 1));
  expect(unhandled).toEqual([]);
});

test("without a deadline, as in a host's transaction, it decides however late", async () => {
  const { tx } = rows();
  const store = transactional({ name: "tx", transaction: (body) => body(tx), within: tx });
  expect(await store.decide(take("k"), 5000)).toMatchObject({ ok: true, value: 9 });
});

test("a deadline that moves, as this process did not run then, is waited for", async () => {
  const { tx } = rows();
  const deadline = { at: performance.now() - 1000 };
  // The limiter's timer, which is overdue.
  setTimeout(() => {
    deadline.at = performance.now() + MINUTE;
  }, 0);
  const store = transactional({ name: "tx", transaction: (body) => body(tx) });
  expect(await store.decide(take("k"), 5000, deadline)).toMatchObject({ ok: true, value: 9 });
});
