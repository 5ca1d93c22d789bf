/** Clients that break the rules of promises, and connections that no longer lead anywhere. */
import { connect, createServer, type Socket } from "node:net";
import { inspect } from "node:util";
import { Pool, type PoolClient } from "pg";
import postgresJs from "postgres";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Config, defineLimits } from "tidegate";
import { migrate, postgres, type PostgresClient } from "tidegate/postgres";
import { LossyProxy } from "../../support/proxy.ts";
import { stallUntilRecovered } from "../half-open.ts";
import { PATIENT, stock, take, withServer } from "./fixture.ts";

const fixture = withServer();
const plenty: Config = { kind: "token bucket", rate: 1e-9, period: 2 ** 40, capacity: 1e6 };

describe("a client that rejects with anything, or throws", () => {
  const bare = Object.create(null) as object;
  test.each<[string, () => unknown, string]>([
    ["rejects with undefined", () => Promise.reject(undefined), "rejected with undefined"],
    ["rejects with null", () => Promise.reject(null), "rejected with null"],
    ["rejects with a string", () => Promise.reject("no database"), "no database"],
    ["rejects with a symbol", () => Promise.reject(Symbol("x")), "rejected with a symbol"],
    ["rejects with an object that has no prototype", () => Promise.reject(bare), "rejected with an object"],
    ["rejects with an error without a message", () => Promise.reject(Object.assign(new Error(), { code: "X1" })), "X1"],
    [
      "throws an error",
      () => {
        throw new Error("thrown");
      },
      "thrown",
    ],
    [
      "throws undefined",
      () => {
        throw undefined;
      },
      "rejected with undefined",
    ],
    ["returns no promise", () => 5, "not a function"],
    ["returns nothing", () => undefined, "undefined"],
    ["resolves with nothing", () => Promise.resolve(), "the answer is not one of tidegate's functions"],
    ["resolves with rows of null", () => Promise.resolve([null]), "the answer is not one of tidegate's functions"],
    ["never settles", () => new Promise(() => {}), "no answer within 50 ms"],
  ])("%s: a StoreError for each call", async (_, query, message) => {
    const clients: PostgresClient[] = [
      { query: query as () => Promise<unknown> },
      { unsafe: query as () => Promise<unknown> },
    ];
    for (const client of clients) {
      const store = postgres(client, { statementTimeout: 50 });
      const limit = stock("odd", 5);
      const all = await Promise.allSettled([
        store.decide(take(limit, "k")),
        store.decide(take(limit, "l")),
        store.decideAll([take(limit, "m")]),
        store.reset(limit, "k"),
        store.getValue(limit, "k"),
      ]);
      for (const one of all) {
        expect(one).toMatchObject({
          status: "rejected",
          reason: { code: "TIDEGATE_STORE", store: "postgres", message: expect.stringContaining(message) },
        });
      }
    }
  });
});

/** Errors around the driver's own, as these ORMs make them. */
const WRAPPERS = {
  TypeORM: (driverError: Error, query: string, parameters: unknown[]) =>
    Object.assign(new Error(driverError.message), { ...driverError, query, parameters, driverError }),
  Sequelize: (error: Error, sql: string, parameters: unknown[]) => {
    const original = Object.assign(error, { sql, parameters });
    return Object.assign(new Error(original.message), { original, parent: original, sql, parameters });
  },
};

test.each(Object.entries(WRAPPERS))(
  "an error of %s is the driver's: a try again, and no other caller's key",
  async (name, wrap) => {
    const pool = fixture.pool();
    const query = (text: string, values: unknown[] = []) =>
      pool.query(text, values).catch((error: Error) => Promise.reject(wrap(error, text, values)));
    const limit = stock(`wrapped.${name}`, 10);
    const missing = postgres({ query }, { ...PATIENT, schema: "absent" });
    const [failed] = await Promise.allSettled(["ann", "ben"].map((key) => missing.decide(take(limit, key))));
    const { reason } = failed as PromiseRejectedResult;
    expect(String(reason)).toContain("run npx tidegate migrate");
    expect(inspect(reason, { depth: 9 })).not.toMatch(/call_rows|ben/);
    const store = postgres({ query }, PATIENT);
    await store.decide(take(limit, "ann"));
    await fixture.admin.query(`BEGIN; SELECT FROM tidegate.states WHERE id = '${limit.identity("ann")}' FOR UPDATE`);
    const deadline = { at: performance.now() + 5000 };
    const decisions = ["ann", "ben"].map((key) => store.decide(take(limit, key), undefined, deadline));
    expect(await decisions[1]).toMatchObject({ ok: true });
    await fixture.admin.query("COMMIT");
    expect(await decisions[0]).toMatchObject({ ok: true });
  },
);

test("after an outage, a call that others undo until its deadline shows that the server answers", async () => {
  let error = new Error("down");
  const lines: string[] = [];
  const log = { error: () => {}, info: (line: string) => void lines.push(line) };
  const store = postgres({ query: () => Promise.reject(error) }, PATIENT);
  const limits = defineLimits({ undone: plenty }, { store, log });
  const call = async () => String((await limits.limit("undone")).cause);
  while (!/failed repeatedly/.test(await call()));
  error = Object.assign(new Error("could not serialize access"), { code: "40001" });
  await expect.poll(call, { timeout: 60_000 }).toContain("concurrent transactions undid it until its deadline");
  expect(lines).toEqual(["tidegate: postgres answers again"]);
});

describe("connections that stay open and lead nowhere", () => {
  async function recovers(make: (port: number) => { client: PostgresClient; end: () => Promise<unknown> }) {
    const proxy = await LossyProxy.start(fixture.server.port);
    onTestFinished(() => proxy.stop());
    const { client, end } = make(proxy.port);
    onTestFinished(async () => void (await end()));
    const store = postgres(client);
    // All connections of the client are open.
    const limits = defineLimits({ open: plenty }, { store, timeout: 60_000 });
    await Promise.all(Array.from({ length: 300 }, (_, i) => limits.limit("open", { key: `${i}` })));
    await fixture.rows("DELETE FROM tidegate.states");
    await stallUntilRecovered(store, proxy);
  }

  test("pg's Pool with its defaults closes them and connects anew", () =>
    recovers((port) => {
      const pool = new Pool({ ...fixture.server.options, port });
      pool.on("error", () => {});
      return { client: pool, end: () => pool.end() };
    }));

  test("postgres.js closes them and connects anew where its socket has a timeout", () =>
    recovers((port) => {
      const { host, user, database } = fixture.server.options;
      // postgres.js reads `socket`, and its types leave it out.
      const options = {
        host,
        port,
        user,
        database,
        onnotice: () => {},
        socket: () =>
          new Promise<Socket>((resolve, reject) => {
            const socket = connect(port, host);
            socket.setTimeout(2000, () => socket.destroy());
            socket.once("connect", () => resolve(socket));
            socket.once("error", reject);
          }),
      };
      const sql = postgresJs(options);
      return { client: sql, end: () => sql.end({ timeout: 0 }) };
    }));
});

test("parallel calls in one transaction are decided in their order, on every client", async () => {
  const limit = stock("parallel", 3);
  const ten = async (client: PostgresClient): Promise<boolean[]> => {
    const bound = postgres(client, PATIENT).within(client);
    const one = await Promise.all(Array.from({ length: 10 }, () => bound.decide(take(limit, "k"))));
    return one.map(({ ok }) => ok);
  };
  const apart = async (client: PostgresClient): Promise<boolean[]> => {
    const store = postgres(client, PATIENT);
    const one = await Promise.all(Array.from({ length: 10 }, () => store.within(client).decide(take(limit, "k"))));
    return one.map(({ ok }) => ok);
  };
  const expected = Array.from({ length: 10 }, (_, i) => i < 3);

  const pool = fixture.pool();
  const client = await pool.connect();
  for (const run of [ten, apart]) {
    await client.query("BEGIN");
    expect(await run(client)).toEqual(expected);
    await client.query("ROLLBACK");
  }
  client.release();

  const { host, port, user, database } = fixture.server.options;
  const sql = postgresJs({ host, port, user, database, onnotice: () => {} });
  for (const run of [ten, apart]) {
    await expect(
      sql.begin(async (tx) => {
        expect(await run(tx)).toEqual(expected);
        throw new Error("undo");
      }),
    ).rejects.toThrow("undo");
  }
  await sql.end();

  const { PGlite } = await import("@electric-sql/pglite");
  const lite = await PGlite.create();
  await migrate(lite);
  for (const run of [ten, apart]) {
    await expect(
      lite.transaction(async (tx) => {
        expect(await run(tx)).toEqual(expected);
        throw new Error("undo");
      }),
    ).rejects.toThrow("undo");
  }
  await lite.close();
});

test("a connection that the server ends in the packet in which it is ready fails its call, and not the process", async () => {
  // What a server sends to a connection that it ends, as at a failover: pg reads both messages before any promise of it settles.
  const error = { S: "FATAL", V: "FATAL", C: "57P01", M: "terminating connection due to administrator command" };
  const texts = Object.entries(error).map(([type, text]) => `${type}${text}\0`);
  const fields = Buffer.from(`${texts.join("")}\0`);
  const head = Buffer.from("E\0\0\0\0");
  head.writeInt32BE(fields.length + 4, 1);
  let ended = 0;
  const server = createServer((client) => {
    const upstream = connect(fixture.server.options);
    for (const socket of [client, upstream]) socket.on("error", () => {});
    client.pipe(upstream);
    client.on("close", () => upstream.destroy());
    upstream.once("data", (ready) => client.write(Buffer.concat([ready, head, fields])) && ended++);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const pool = new Pool({ ...fixture.server.options, port });
  pool.on("error", () => {});
  const limits = defineLimits({ ended: plenty }, { store: postgres(pool, PATIENT), timeout: 60_000 });
  const { cause } = await limits.limit("ended", { key: "k" });
  expect(String(cause)).toMatch(/terminating connection|not queryable/);
  expect(ended).toBeGreaterThan(0);
  await pool.end();
  server.close();
});

type Connect = (acquired?: (error: unknown, connection?: PoolClient) => void) => Promise<PoolClient> | undefined;

test.each<[string, (connect: Connect) => Connect]>([
  ["takes no callback", (connect) => () => connect()],
  ["calls back and returns a promise of nothing", (connect) => async (acquired) => connect(acquired) as never],
  [
    "calls back and returns a promise of the same",
    (connect) => async (acquired) => {
      const connection = (await connect()) as PoolClient;
      acquired?.(undefined, connection);
      return connection;
    },
  ],
])("a pool whose connect %s decides too, and keeps no listener", async (_, wrap) => {
  const pool = new Pool(fixture.server.options);
  const connections: PoolClient[] = [];
  pool.on("connect", (connection) => void connections.push(connection));
  pool.connect = wrap(pool.connect.bind(pool) as Connect) as Pool["connect"];
  const limits = defineLimits({ promised: plenty }, { store: postgres(pool, PATIENT), timeout: 60_000 });
  const decisions = await Promise.all(Array.from({ length: 3 }, () => limits.limit("promised", { key: "k" })));
  expect(decisions.map(({ ok, degraded }) => [ok, degraded])).toEqual(Array(3).fill([true, undefined]));
  // That of the pool itself.
  expect(connections.map((connection) => connection.listenerCount("error"))).toEqual(connections.map(() => 1));
  await pool.end();
});
