import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { describe, expect, test } from "vitest";
import { defineLimits, isStoreError } from "tidegate";
import { Limit } from "tidegate/store";
import { postgres, type PostgresStore } from "tidegate/postgres";
import { Deadline } from "../../support/deadline.ts";
import { heap } from "../../support/heap.ts";
import { busyIsNoOutage } from "../busy.ts";
import { PATIENT, stock, take, withServer } from "./fixture.ts";

const TIMEOUT = 100;
/** ms, for calls whose answer the test needs. */
const PATIENCE = 60_000;
const fixture = withServer({ fsync: "off", max_connections: 30, superuser_reserved_connections: 3 });

const plenty = (store: PostgresStore, timeout = TIMEOUT) =>
  defineLimits({ api: { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 1e9 } }, { store, timeout });

/** Calls until the store decides again, and fails where it never does. */
async function recovers(decide: () => PromiseLike<{ ok: boolean; degraded?: true }>): Promise<void> {
  const until = performance.now() + PATIENCE;
  for (;;) {
    const answer = await decide();
    if (answer.degraded !== true) {
      expect(answer.ok).toBe(true);
      return;
    }
    if (performance.now() > until) throw new Error("service did not resume");
    await sleep(50);
  }
}

/** Calls in 32 strands, at least once in each, until `over` resolves: how many outlived their deadline, and what the store granted. */
async function load(decide: (i: number) => PromiseLike<{ ok: boolean; degraded?: true }>, over: Promise<unknown>) {
  let isOver = false;
  const ended = over.finally(() => {
    isOver = true;
  });
  const deadline = new Deadline(TIMEOUT);
  let granted = 0;
  let degraded = 0;
  await Promise.all(
    Array.from({ length: 32 }, async (_, i) => {
      do {
        const answer = await deadline.of(() => decide(i));
        if (answer.degraded === true) degraded++;
        else if (answer.ok) granted++;
        await sleep(1);
      } while (!isOver);
    }),
  );
  await ended;
  return { late: deadline.late, granted, degraded };
}

/** Whether the store grants a call: not while the server, or its answer, is late. */
const decides = (store: PostgresStore, limit: Limit): Promise<boolean> =>
  store.decide(take(limit, "k")).then(
    ({ ok }) => ok,
    () => false,
  );

/** On a connection of its own, since the others may be gone. */
async function sql(text: string): Promise<Record<string, unknown>[]> {
  const client = new Client(fixture.server.options);
  await client.connect();
  try {
    return (await client.query(text)).rows ?? [];
  } finally {
    await client.end();
  }
}
const taken = async (): Promise<number> => {
  const text = "SELECT coalesce(sum(1e9 - value), 0) AS taken FROM tidegate.states WHERE substr(id, 1, 4) = 'api:'";
  return Math.round((await sql(text))[0]?.["taken"] as number);
};
const forgetAll = () => sql("DELETE FROM tidegate.states");

describe("a server that fails", () => {
  test("restarts under load: no call outlives its deadline, nothing is taken twice, and service resumes", async () => {
    const limits = plenty(fixture.store());
    await forgetAll();
    let isDegraded = false;
    const decide = async (i: number) => {
      const decision = await limits.limit("api", { key: `${i}` });
      if (decision.degraded === true) isDegraded = true;
      return decision;
    };
    const restart = async (): Promise<void> => {
      await sleep(400);
      await fixture.server.stop("immediate");
      await sleep(500);
      // Not before a call has met the server that is down.
      while (!isDegraded) await sleep(10);
      await fixture.server.start();
    };
    const { late, granted, degraded } = await load(decide, restart());
    expect(late).toBe(0);
    await recovers(() => limits.limit("api", { key: "after" }));
    // A crash may undo what was not yet on the disk (fsync is off here), and a commit whose answer was lost counts once.
    expect(await taken()).toBeLessThanOrEqual(granted + 1 + degraded);
  });

  test("backends that are terminated cost their own calls only, once", async () => {
    const limits = plenty(fixture.store({ statementTimeout: PATIENCE }), PATIENCE);
    await forgetAll();
    const terminate = async (): Promise<void> => {
      for (let i = 0; i < 5; i++) {
        await sleep(200);
        await sql(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
        );
      }
      await sleep(500);
    };
    const { granted, degraded } = await load((i) => limits.limit("api", { key: `${i}` }), terminate());
    expect(granted).toBeGreaterThan(0);
    const total = await taken();
    // What was answered was taken, once; what was not answered was taken at most once.
    expect(total).toBeGreaterThanOrEqual(granted);
    expect(total).toBeLessThanOrEqual(granted + degraded);
    await recovers(() => limits.limit("api", { key: "after" }));
  });

  test("a server that stands still: every call ends in time, memory does not grow, and service resumes", async () => {
    const limits = plenty(fixture.store({ statementTimeout: 300 }));
    await recovers(() => limits.limit("api", { key: "warm" }));
    fixture.server.signal("SIGSTOP");
    try {
      const first = await load((i) => limits.limit("api", { key: `${i}` }), sleep(700));
      expect(first.granted).toBe(0);
      expect(first.late).toBe(0);
      const before = heap();
      let more = 0;
      const thousand = async (): Promise<void> => {
        while (more < 1000) await sleep(10);
      };
      await load((i) => {
        more++;
        return limits.limit("api", { key: `${i}` });
      }, thousand());
      expect(heap() - before).toBeLessThan(16 * 2 ** 20);
    } finally {
      fixture.server.signal("SIGCONT");
    }
    await recovers(() => limits.limit("api", { key: "after" }));
  });

  test("a server that stands still, without a limiter: promises settle, and the statements without a reply are bounded", async () => {
    const pool = fixture.pool();
    let out = 0;
    let most = 0;
    let sent = 0;
    const query = async (text: string, values?: unknown[]): Promise<unknown> => {
      sent++;
      most = Math.max(most, ++out);
      try {
        return await pool.query(text, values);
      } finally {
        out--;
      }
    };
    const store = postgres({ query }, { statementTimeout: 50 });
    const limit = stock("hole", 1e6);
    // By another store, as the first call on a key may clean up after it.
    await postgres(pool, { statementTimeout: PATIENCE }).decide(take(limit, "k"));
    fixture.server.signal("SIGSTOP");
    const began = performance.now();
    try {
      for (let i = 0; i < 40; i++) {
        const answers = await Promise.allSettled(
          Array.from({ length: 10 }, (_, j) => store.decide(take(limit, `${j}`))),
        );
        for (const answer of answers)
          expect(answer).toMatchObject({ status: "rejected", reason: { code: "TIDEGATE_STORE" } });
      }
      // Four for each of the two places, and one a second to find out whether it is back.
      const probes = Math.ceil((performance.now() - began) / 1000);
      expect(most).toBeLessThanOrEqual(8 + probes);
      expect(sent).toBeLessThanOrEqual(8 + probes);
    } finally {
      fixture.server.signal("SIGCONT");
    }
    await expect.poll(() => out, { timeout: PATIENCE }).toBe(0);
    await expect.poll(() => decides(store, limit), { timeout: PATIENCE }).toBe(true);
  });

  test("a client that never settles a statement to a server that is gone: service resumes", async () => {
    const pool = fixture.pool();
    let gone = false;
    let unanswered = 0;
    let error: Error | undefined;
    const query = (text: string, values?: unknown[]): Promise<unknown> => {
      if (error !== undefined) return Promise.reject(error);
      if (!gone) return pool.query(text, values);
      unanswered++;
      return new Promise(() => {});
    };
    const store = postgres({ query }, { statementTimeout: 100 });
    const limit = stock("gone", 1e6);
    await pool.query("SELECT 1");
    await expect.poll(() => decides(store, limit), { timeout: PATIENCE }).toBe(true);
    gone = true;
    const began = performance.now();
    // The two statements that may be out are given up at different times.
    const calls = async (key: string): Promise<void> => {
      for (let i = 0; i < 30; i++) await expect(store.decide(take(limit, key))).rejects.toThrow(`gone:${key}`);
    };
    await Promise.all([calls("k"), sleep(50).then(() => calls("other"))]);
    expect(unanswered).toBeLessThanOrEqual(8 + Math.ceil((performance.now() - began) / 1000));
    gone = false;
    error = Object.assign(new Error("the server's own error"), { code: "XX000", severity: "ERROR" });
    const reason = () => store.decide(take(limit, "k")).catch(String);
    await expect.poll(reason, { timeout: PATIENCE }).toContain("the server's own error");
    error = undefined;
    // What never settles is no reason to send only one statement a second from then on.
    for (let i = 0; i < 20; i++) await store.decide(take(limit, "k"));
  });

  test("where this process was too busy to send many, the server has not failed", async () => {
    await busyIsNoOutage(fixture.store());
  });

  test("a server without a free connection: the error states that, and calls resume once there is one", async () => {
    await sql("CREATE ROLE limited LOGIN");
    const held: Client[] = [];
    try {
      for (let i = 0; i < 30; i++) {
        const client = new Client({ ...fixture.server.options, user: "limited" });
        client.on("error", () => {});
        await client.connect();
        held.push(client);
      }
    } catch (error) {
      expect(error).toMatchObject({ code: "53300" });
    }
    const store = fixture.store({}, { user: "limited" });
    const limits = plenty(store, 2000);
    const answer = await limits.limit("api", { key: "k" });
    const cause = { store: "postgres", scope: "store", cause: { code: "53300" } };
    expect(answer).toMatchObject({ ok: false, degraded: true, cause });
    for (const client of held) await client.end();
    await sql(
      "GRANT USAGE ON SCHEMA tidegate TO limited; GRANT SELECT, INSERT, UPDATE, DELETE ON tidegate.states TO limited",
    );
    await recovers(() => limits.limit("api", { key: "k" }));
  });

  test("a call on a row that another session keeps locked ends at its deadline, names the lock, and takes nothing", async () => {
    const limit = stock("locked", 100);
    const store = fixture.store({ statementTimeout: 5000 });
    await store.decide(take(limit, "k"));
    const holder = new Client(fixture.server.options);
    await holder.connect();
    await holder.query("BEGIN; UPDATE tidegate.states SET value = value WHERE id = 'locked:k'");
    await expect(store.decide(take(limit, "k"))).rejects.toMatchObject({
      identity: "locked:k",
      scope: "key",
      message: expect.stringContaining("locked by another transaction"),
      cause: { code: "55P03" },
    });
    // Others go on meanwhile.
    expect((await store.decide(take(limit, "other"))).ok).toBe(true);
    const connected = fixture.store();
    // A first call waits for its connection beyond the deadline.
    await connected.decide(take(limit, "other"));
    const limits = defineLimits(
      { locked: { kind: "token bucket", rate: 1e-9, period: 2 ** 40, capacity: 100 } },
      { store: connected, timeout: 80 },
    );
    const deadline = new Deadline(80);
    const denied = await deadline.of(() => limits.limit("locked", { key: "k" }));
    expect(denied).toMatchObject({ ok: false, degraded: true });
    expect(deadline.late).toBe(0);
    // A statement that a busy process sent late is still out: it stops waiting for the lock, which is held until then.
    const waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    const observer = new Client(fixture.server.options);
    await observer.connect();
    while ((await observer.query(waiting)).rowCount !== 0) await sleep(5);
    await observer.end();
    await holder.query("ROLLBACK");
    await holder.end();
    const left = (await store.getValue(limit, "k")).value;
    expect(left).toBeCloseTo(99, 6);
  });

  test("a refused connection, an unknown role and a read-only session are StoreErrors with the client's error as cause", async () => {
    const port = fixture.server.port;
    const refused = fixture.store({}, { port: 1 });
    const limit = stock("refused", 10);
    await expect(refused.decide(take(limit, "k"))).rejects.toSatisfy(isStoreError);
    await expect(refused.decide(take(limit, "k"))).rejects.toMatchObject({ cause: { code: "ECONNREFUSED" } });
    const readOnly = fixture.store({}, { port, options: "-c default_transaction_read_only=on" });
    await expect(readOnly.decide(take(limit, "k"))).rejects.toMatchObject({ cause: { code: "25006" } });
    const unknown = fixture.store({}, { user: "no_such_role" });
    await expect(unknown.decide(take(limit, "k"))).rejects.toMatchObject({ cause: { code: "28000" } });
  });

  test.each([
    ["made while the database accepted no writes", ["SET default_transaction_read_only = on"], "25006"],
    ["left in a transaction that failed", ["BEGIN", "SELECT 1 / 0"], "25P02"],
    ["whose prepared statements the application has dropped", ["DISCARD ALL"], "26000"],
  ])("a connection %s is closed after one call", async (_, statements, code) => {
    const pool = fixture.pool({ max: 1 });
    const store = postgres(pool, PATIENT);
    const limit = stock("session", 10);
    expect(await store.decide(take(limit, code))).toMatchObject({ ok: true });
    const connection = await pool.connect();
    for (const statement of statements) await connection.query(statement).catch(() => {});
    connection.release();
    await expect(store.decide(take(limit, code))).rejects.toMatchObject({ cause: { code } });
    expect(await store.decide(take(limit, code))).toMatchObject({ ok: true });
  });
});

describe("what is stored is not a state", () => {
  test.each(["NaN", "Infinity", "-Infinity"])("%s: a StoreError with the identity, never a fresh key", async (bad) => {
    const store = fixture.store();
    const name = `corrupt${bad.replace("-", "_")}`;
    const limit = stock(name, 10);
    const window = new Limit(`${name}.w`, { kind: "fixed window", rate: 5, period: 1000 });
    const client = new Client(fixture.server.options);
    await client.connect();
    const put = "INSERT INTO tidegate.states VALUES (convert_to($1, 'UTF8'), $2, $3)";
    for (const id of [`${name}:v`, `${name}.w:v`]) await client.query(put, [id, bad, 1_763_640_000_000]);
    for (const id of [`${name}:t`, `${name}.w:t`]) await client.query(put, [id, 5, bad]);
    const before = (await client.query("SELECT * FROM tidegate.states ORDER BY id")).rows;
    for (const one of [limit, window]) {
      for (const key of ["v", "t"]) {
        const identity = one.identity(key);
        const refuse = (of: Promise<unknown>) =>
          expect(of, identity).rejects.toMatchObject({ code: "TIDEGATE_STORE", store: "postgres", identity });
        await refuse(store.decide(take(one, key)));
        await refuse(store.decide(take(one, key, 100, { reserve: true })));
        await refuse(store.decide(take(one, key, 1, { op: "check" })));
        await refuse(store.decide(take(one, key, 1, { op: "give" })));
        await refuse(store.decide(take(one, key, 1, { op: "charge" })));
        await refuse(store.getValue(one, key));
        await refuse(store.decideAll([take(one, key)]));
        // Together with others: theirs are answered.
        const [bad, good] = await Promise.allSettled([store.decide(take(one, key)), store.decide(take(one, "good"))]);
        expect(bad.status).toBe("rejected");
        expect(good).toMatchObject({ status: "fulfilled", value: { ok: true } });
        await store.reset(one, "good");
      }
    }
    expect((await client.query("SELECT * FROM tidegate.states ORDER BY id")).rows).toEqual(before);
    await client.end();
    // A reset heals it.
    await store.reset(limit, "v");
    expect((await store.decide(take(limit, "v"))).ok).toBe(true);
  });
});
