/** A first call on a client that has yet to connect: the time that takes does not count as the call's. */
import { Client, Pool } from "pg";
import postgresJs from "postgres";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { defineLimits, HOUR } from "tidegate";
import { postgres, type PostgresClient } from "tidegate/postgres";
import { LossyProxy } from "../../support/proxy.ts";
import { withServer } from "./fixture.ts";

const fixture = withServer();
const limits = { cold: { kind: "token bucket", rate: 10, period: HOUR } } as const;

type Open = (port: number) => { client: PostgresClient; close(): Promise<unknown> };
const clients: Readonly<Record<string, Open>> = {
  "pg's Pool": (port) => {
    const client = new Pool({ ...fixture.server.options, port });
    return { client, close: () => client.end() };
  },
  "pg's Client, not connected yet": (port) => {
    const client = new Client({ ...fixture.server.options, port });
    void client.connect();
    return { client, close: () => client.end() };
  },
  "postgres.js": (port) => {
    const client = postgresJs({ ...fixture.server.options, port });
    return { client, close: () => client.end() };
  },
};

describe("a first call while the client connects", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test.each(Object.entries(clients))("%s: the connection does not count as the call's timeout", async (name, open) => {
    const proxy = await LossyProxy.start(fixture.server.port);
    let release = (): void => {};
    proxy.gate = new Promise((resolve) => {
      release = resolve;
    });
    const { client, close } = open(proxy.port);
    const store = postgres(client);
    const limiter = defineLimits(limits, { store, timeout: 50, log: false });
    const first = limiter.limit("cold", { key: name });
    await vi.advanceTimersByTimeAsync(1900);
    release();
    expect(await first).toMatchObject({ ok: true, remaining: 9 });
    expect(store.connecting).toBeUndefined();
    await close();
    proxy.stop();
  });

  test("a server that does not answer is waited for 2 s, and then for the call's timeout", async () => {
    const proxy = await LossyProxy.start(fixture.server.port);
    proxy.gate = new Promise(() => {});
    const pool = new Pool({ ...fixture.server.options, port: proxy.port });
    const limiter = defineLimits(limits, { store: postgres(pool), timeout: 50, log: false });
    let decided = false;
    const first = limiter.limit("cold", { key: "never" });
    void first.then(() => {
      decided = true;
    });
    await vi.advanceTimersByTimeAsync(2000);
    expect(decided).toBe(false);
    await vi.advanceTimersByTimeAsync(50);
    expect(await first).toMatchObject({ ok: false, degraded: true });
    proxy.stop();
  });
});

test("a store within a transaction has a connection", () => {
  const store = postgres(fixture.pool());
  expect(store.within(fixture.admin).connecting).toBeUndefined();
});
