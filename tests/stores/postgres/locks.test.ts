/** Rows and tables that another session keeps locked: which calls wait, which fail, and what is taken. */
import { setTimeout as sleep } from "node:timers/promises";
import { Client, type DatabaseError } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Config, defineLimits } from "tidegate";
import { postgres, type PostgresStore } from "tidegate/postgres";
import { collect } from "../../support/heap.ts";
import { LossyProxy } from "../../support/proxy.ts";
import { PATIENT, stock, take, withServer } from "./fixture.ts";

const fixture = withServer();
const plenty: Config = { kind: "token bucket", rate: 1e-9, period: 2 ** 40, capacity: 1e6 };

/** Runs `body` while another session's open transaction has run these statements. */
async function holding<T>(statements: string, body: () => Promise<T>): Promise<T> {
  const holder = new Client(fixture.server.options);
  await holder.connect();
  await holder.query(`BEGIN; ${statements}`);
  try {
    return await body();
  } finally {
    await holder.query("ROLLBACK");
    await holder.end();
  }
}
/** ms; no lock is released within it. */
const PATIENCE = 20_000;
const row = (id: string): string => `SELECT FROM tidegate.states WHERE id = '${id}' FOR UPDATE`;

/** Calls on `keys`, in a strand each, until every key of `counted` had so many: the causes of degraded decisions by key. */
async function calls(
  store: PostgresStore,
  name: string,
  keys: readonly string[],
  counted: readonly string[],
  turns: number,
) {
  const impatient = defineLimits({ [name]: plenty }, { store });
  // On a slow machine too, only a call that waits for the lock runs into this timeout.
  const patient = defineLimits({ [name]: plenty }, { store, timeout: PATIENCE });
  const degraded = new Map<string, unknown[]>();
  let open = counted.length;
  const strand = async (key: string, counts: boolean): Promise<void> => {
    const limits = counts ? patient : impatient;
    for (let turn = 0; counts ? turn < turns : open > 0; turn++) {
      const decision = await limits.limit(name, { key });
      if (decision.degraded) degraded.set(key, [...(degraded.get(key) ?? []), decision.cause]);
      await sleep(1);
    }
    if (counts) open--;
  };
  await Promise.all([...keys.map((key) => strand(key, false)), ...counted.map((key) => strand(key, true))]);
  return degraded;
}

describe("a row that another transaction has locked", () => {
  const others = Array.from({ length: 60 }, (_, i) => `k${i}`);

  test.each([
    ["one", 2, ["a"]],
    ["two", 2, ["a", "b"]],
    ["five", 2, ["a", "b", "c", "d", "e"]],
    ["two, over one connection", 1, ["a", "b"]],
  ])("%s: no call on another row is degraded, and those on it name the lock", async (_, statements, locked) => {
    const name = `rows${statements}.${locked.length}`;
    const store = fixture.store({ statements });
    await calls(store, name, [], [...locked, ...others], 1);
    const degraded = await holding(locked.map((key) => row(`${name}:${key}`)).join(";"), () =>
      calls(store, name, [...locked, ...locked], others, 150),
    );
    expect([...degraded.keys()].sort(), String(degraded.get("k0"))).toEqual(locked);
    for (const causes of degraded.values()) {
      // Beside it, a server that was late may be the cause.
      expect(causes).toContainEqual(
        expect.objectContaining({
          code: "TIDEGATE_STORE",
          scope: "key",
          message: expect.stringContaining("locked by another transaction"),
        }),
      );
    }
    expect((await calls(store, name, [], [...locked, ...others], 2)).size).toBe(0);
  });

  test("a statement_timeout shorter than the wait for a lock fails only the calls on the locked row, and they name it", async () => {
    const pool = fixture.pool();
    // Waits for a lock end here by the code that `statement_timeout` has. On a busy machine the setting itself would end
    // statements on free rows, too.
    const query = (text: string, values?: unknown[]) =>
      pool.query(text, values).catch((error: DatabaseError) => {
        throw error.code === "55P03" ? Object.assign(error, { code: "57014" }) : error;
      });
    const store = postgres({ query }, PATIENT);
    await store.decide(take(stock("hasty", 1e6), "a"));
    const timed = holding(row("hasty:a"), () => fixture.pool({ statement_timeout: 50 }).query(row("hasty:a")));
    await expect(timed).rejects.toMatchObject({ code: "57014" });
    const degraded = await holding(row("hasty:a"), () => calls(store, "hasty", ["a"], others, 150));
    expect([...degraded.keys()], String(degraded.get("k0"))).toEqual(["a"]);
    expect(degraded.get("a")).toContainEqual(
      expect.objectContaining({ scope: "key", message: expect.stringContaining("locked by another transaction") }),
    );
  });

  test("the errors of its calls are not kept", async () => {
    const limits = defineLimits({ kept: plenty }, { store: fixture.store(), log: false });
    await limits.limit("kept", { key: "a" });
    const failed = async (): Promise<WeakRef<object> | undefined> => {
      const { cause } = await limits.limit("kept", { key: "a" });
      const { cause: ofServer } = Object(cause) as { cause?: DatabaseError };
      return ofServer && new WeakRef(ofServer);
    };
    await holding(row("kept:a"), async () => {
      let first = await failed();
      while (first === undefined) first = await failed();
      // The last one is kept while the row counts as locked.
      for (let i = 0; i < 5; i++) await failed();
      collect();
      expect(first.deref()).toBeUndefined();
    });
  });

  test("a row that another transaction is inserting fails only its own calls", async () => {
    const store = fixture.store();
    const degraded = await holding("INSERT INTO tidegate.states VALUES ('inserted:a', 5, 1)", () =>
      calls(store, "inserted", ["a"], others, 150),
    );
    expect([...degraded.keys()]).toEqual(["a"]);
  });

  test("a call of several limits with one of them on it does not stop calls on the others", async () => {
    const store = fixture.store();
    await store.decide(take(stock("several", 1e6), "a"));
    const configs = { several: plenty, all: plenty };
    const limits = defineLimits(configs, { store });
    const patient = defineLimits(configs, { store, timeout: PATIENCE });
    let stop = false;
    const joint = async (): Promise<void> => {
      while (!stop) {
        const decision = await limits.limitAll([{ name: "several", key: "a" }, { name: "all" }]);
        expect(decision.ok).toBe(false);
        await sleep(1);
      }
    };
    const degraded = await holding(row("several:a"), async () => {
      const running = Promise.all([joint(), joint()]);
      let failed = 0;
      for (let i = 0; i < 300; i++) {
        const decision = await patient.limit("all");
        if (decision.degraded) failed++;
        await sleep(1);
      }
      stop = true;
      await running;
      return failed;
    });
    expect(degraded).toBe(0);
  });

  test("calls on it are decided in their order once it is free, and taken once", async () => {
    const store = fixture.store();
    const limit = stock("later", 10);
    await store.decide(take(limit, "k"));
    let decided: Promise<readonly { ok: boolean; value: number }[]> | undefined;
    await holding(row("later:k"), async () => {
      const until = { at: performance.now() + 60_000 };
      decided = Promise.all(Array.from({ length: 12 }, () => store.decide(take(limit, "k"), undefined, until)));
      await sleep(300);
    });
    const answers = (await decided) as readonly { ok: boolean; value: number }[];
    expect(answers.map(({ ok }) => ok)).toEqual(Array.from({ length: 12 }, (_, i) => i < 9));
    for (const [i, { value }] of answers.entries()) expect(value).toBeCloseTo(Math.max(0, 8 - i), 6);
  });

  test("calls on it that are denied at their deadline take nothing", async () => {
    const store = fixture.store();
    await store.decide(take(stock("denied", 1e6), "k"));
    const limits = defineLimits({ denied: plenty }, { store, timeout: 100 });
    const decisions = await holding(row("denied:k"), () =>
      Promise.all(Array.from({ length: 101 }, () => limits.limit("denied", { key: "k" }))),
    );
    expect(decisions.every(({ degraded }) => degraded)).toBe(true);
    await sleep(300);
    expect(1e6 - (await store.getValue(stock("denied", 1e6), "k")).value).toBeCloseTo(1, 6);
  });

  test("in an outage, a call on it that nothing answers is no answer of the server", async () => {
    const proxy = await LossyProxy.start(fixture.server.port);
    onTestFinished(() => proxy.stop());
    const lines: string[] = [];
    const line = (text: string) => void lines.push(text);
    const store = fixture.store({}, { port: proxy.port });
    const limits = defineLimits({ dark: plenty }, { store, log: { error: line, info: line } });
    await defineLimits({ dark: plenty }, { store, timeout: PATIENCE }).limit("dark", { key: "k" });
    await holding(row("dark:k"), async () => {
      await limits.limit("dark", { key: "k" });
      proxy.gate = new Promise(() => {});
      for (const key of ["other", "k", "k"]) expect((await limits.limit("dark", { key })).degraded).toBe(true);
    });
    expect(lines).toEqual([
      expect.stringMatching(/"dark:k" failed: .*calls on this key are denied/),
      expect.stringMatching(/"dark:other" failed: .*until postgres answers again/),
    ]);
  });

  test.each([2, 1])(
    "after an outage, a late call on it shows that the server answers: %i statements",
    async (statements) => {
      const proxy = await LossyProxy.start(fixture.server.port);
      onTestFinished(() => proxy.stop());
      const lines: string[] = [];
      const store = fixture.store({ statements }, { port: proxy.port });
      const limits = defineLimits(
        { back: plenty },
        { store, log: { error: () => {}, info: (line) => lines.push(line) } },
      );
      await defineLimits({ back: plenty }, { store, timeout: PATIENCE }).limit("back", { key: "k" });
      await holding(row("back:k"), async () => {
        await limits.limit("back", { key: "k" });
        let open = (): void => {};
        proxy.gate = new Promise((resolve) => {
          open = resolve;
        });
        // The last four are sent later and later: the next one is after more than a second.
        for (let sent = 0; sent < 9; await sleep(5)) {
          if (!/failed repeatedly/.test(String((await limits.limit("back", { key: "other" })).cause))) sent++;
        }
        proxy.gate = undefined;
        open();
        while (!/is locked/.test(String((await limits.limit("back", { key: "k" })).cause))) await sleep(5);
        expect(lines).toEqual(["tidegate: postgres answers again"]);
        expect((await limits.limit("back", { key: "other" })).degraded).toBeUndefined();
      });
    },
  );
});

test("a locked table: a call that ends at its deadline takes nothing, whether it was sent or queued", async () => {
  const store = fixture.store();
  // Much more than a statement takes, also on a slow machine: one that is sent in time has its reply in time.
  const limits = defineLimits({ table: plenty }, { store, timeout: 1000 });
  let granted = 0;
  let degraded = 0;
  let stop = false;
  const caller = async (i: number): Promise<void> => {
    while (!stop) {
      const decision = await limits.limit("table", { key: `k${i % 50}` });
      if (decision.degraded) degraded++;
      else if (decision.ok) granted++;
      await sleep(1);
    }
  };
  const running = Promise.all(Array.from({ length: 200 }, (_, i) => caller(i)));
  for (let round = 1; round <= 2; round++) {
    await sleep(100);
    await holding("LOCK TABLE tidegate.states IN ACCESS EXCLUSIVE MODE", async () => {
      await sleep(1300);
      while (degraded < 100 * round) await sleep(10);
    });
  }
  stop = true;
  await running;
  await sleep(300);
  const [sum] = await fixture.rows(
    "SELECT sum(1e6 - value) AS taken FROM tidegate.states WHERE substr(id, 1, 6) = 'table:'",
  );
  // At most what two statements had in them when they were answered too late, and not what waited behind them.
  expect(Math.round(sum?.["taken"] as number) - granted).toBeLessThan(200);
});

describe("calls that are still in this process at their deadline", () => {
  const expired = async (store: PostgresStore, name: string, body: () => Promise<void>): Promise<void> => {
    // The store withdraws what waits 20 ms before that, which an event loop on a busy machine may be behind.
    const limits = defineLimits({ [name]: plenty }, { store, timeout: 300 });
    const decisions = await Promise.all(Array.from({ length: 101 }, () => limits.limit(name, { key: "k" })));
    expect(decisions.every(({ degraded }) => degraded)).toBe(true);
    await body();
    await expect
      .poll(
        () =>
          store.getValue(stock(name, 1e6), "k").then(
            ({ value }) => value,
            () => 0,
          ),
        { timeout: 60_000 },
      )
      .toBe(1e6);
  };

  test("are never sent: those that wait for a connection of pg's Pool", async () => {
    const pool = fixture.pool({ max: 1 });
    const held = await pool.connect();
    await expired(postgres(pool), "pooled", async () => held.release());
  });

  test("are never sent: those that wait for a connection of postgres.js", async () => {
    const { default: postgresJs } = await import("postgres");
    const { host, port, user, database } = fixture.server.options;
    const sql = postgresJs({ host, port, user, database, max: 1, onnotice: () => {} });
    const held = await sql.reserve();
    await expired(postgres(sql), "reserved", async () => held.release());
    await sql.end();
  });

  test("are never sent: those that wait in the store's queue", async () => {
    const pool = fixture.pool();
    let open = (): void => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    // The one statement stays out, also while the limiter waits for the connection.
    const settings = { statements: 1, statementTimeout: 60_000 };
    const store = postgres({ query: (text, values) => gate.then(() => pool.query(text, values)) }, settings);
    const blocked = store.getValue(stock("other", 1), "k");
    await expired(store, "queued", async () => open());
    await blocked;
  });
});
