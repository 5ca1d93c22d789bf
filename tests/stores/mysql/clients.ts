/** The clients that the store is tested with, with their default settings. */
import { createPool as createMariadbPool } from "mariadb";
import { createPool as createCallbackPool } from "mysql2";
import { createPool } from "mysql2/promise";
import type { MysqlLike } from "tidegate/mysql";
import type { Server } from "./server.ts";

/** An open client, and how to close it. */
export interface Open {
  readonly client: MysqlLike;
  close(): unknown;
}

export const clients = {
  "mysql2/promise": (server: Pick<Server, "options">): Open => {
    const client = createPool(server.options);
    return { client, close: () => client.end() };
  },
  mysql2: (server: Pick<Server, "options">): Open => {
    const client = createCallbackPool(server.options);
    return { client, close: () => client.promise().end() };
  },
  mariadb: (server: Pick<Server, "options">): Open => {
    const client = createMariadbPool(server.options);
    return { client, close: () => client.end() };
  },
};
