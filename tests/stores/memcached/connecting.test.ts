/** A first call on a client that has yet to connect: the time that takes does not count as the call's. */
import { describe } from "vitest";
import { memcached } from "tidegate/memcached";
import { connectingSuite } from "../connecting.ts";
import { clients } from "./clients.ts";
import { running } from "../running.ts";
import { MemcachedServer } from "./server.ts";

const fixture = running(() => MemcachedServer.start());

describe.each(Object.entries(clients))("%s", (_, open) => {
  connectingSuite(
    () => fixture.server.port,
    (port) => {
      const { client, close } = open(`127.0.0.1:${port}`);
      return { store: memcached(client), close };
    },
  );
});
