/** The settings against half-open connections that the guide names. */
import { connect } from "node:net";
import { createPool as createMariadbPool } from "mariadb";
import { createPool } from "mysql2/promise";
import { onTestFinished, test } from "vitest";
import { mysql } from "tidegate/mysql";
import { LossyProxy } from "../../support/proxy.ts";
import { stallUntilRecovered } from "../half-open.ts";
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
    await stallUntilRecovered(mysql(client, { table: name }), proxy);
  },
);
