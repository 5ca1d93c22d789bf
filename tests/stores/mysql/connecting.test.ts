/** A first call on a pool that has yet to connect: the time that takes does not count as the call's. */
import { describe } from "vitest";
import { mysql } from "tidegate/mysql";
import { connectingSuite } from "../connecting.ts";
import { clients } from "./clients.ts";
import { withServer } from "./fixture.ts";

const fixture = withServer();

describe.each(Object.entries(clients))("%s", (_, open) => {
  connectingSuite(
    () => fixture.server.port,
    (port) => {
      const { client, close } = open({ options: { ...fixture.server.options, port } });
      return { store: mysql(client), close };
    },
  );
});
