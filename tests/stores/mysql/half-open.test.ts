/** A connection that is open on this side alone, as after a failover without a FIN: the settings that the guide names. */
import { connect } from "node:net";
import { createPool as createMariadbPool } from "mariadb";
import { createPool } from "mysql2/promise";
import { expect, onTestFinished, test, vi } from "vitest";
import { defineLimits } from "tidegate";
import { mysql } from "tidegate/mysql";
import { LossyProxy } from "../../support/proxy.ts";
import type { Open } from "./clients.ts";
import { withServer } from "./fixture.ts";

const fixture = withServer();

const clients: Readonly<Record<string, (port: number) => Open>> = {
  mysql2: (port) => {
    const stream = () => {
      const socket = connect(port, "127.0.0.1");
      return socket.setTimeout(1000, () => socket.destroy());
    };
    const client = createPool({ ...fixture.server.options, port, stream });
    // It rejects with the error of a connection that was lost during a statement.
    return { client, close: () => client.end().catch(() => {}) };
  },
  mariadb: (port) => {
    const client = createMariadbPool({ ...fixture.server.options, port, socketTimeout: 1000 });
    return { client, close: () => client.end() };
  },
};

test.each(Object.entries(clients))(
  "%s recovers from half-open connections by its socket timeout",
  async (name, make) => {
    const proxy = await LossyProxy.start(fixture.server.options.port);
    onTestFinished(() => proxy.stop());
    const { client, close } = make(proxy.port);
    onTestFinished(async () => void (await close()));
    const limits = { api: { kind: "token bucket", rate: 100, period: 2 ** 40 } } as const;
    const store = mysql(client, { table: name });
    const limiter = defineLimits(limits, { store, log: false });
    // For calls that are not late, however slow the machine.
    const patient = defineLimits(limits, { store, timeout: 60_000, log: false });
    expect((await patient.limit("api")).ok).toBe(true);
    proxy.stall();
    expect((await limiter.limit("api")).degraded).toBe(true);
    await vi.waitUntil(async () => !(await limiter.check("api")).degraded, { timeout: 30_000, interval: 50 });
    expect(Math.round((await patient.getValue("api")).value)).toBe(99);
  },
);
