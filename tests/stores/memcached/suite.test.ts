/** The contract of a store on a real memcached, through every shape of client. */
import { afterAll, beforeAll, describe, test } from "vitest";
import { memcached } from "tidegate/memcached";
import { storeSuite } from "tidegate/testing";
import { few } from "../vectors.ts";
import { clients, type Open } from "./clients.ts";
import { running } from "../running.ts";
import { MemcachedServer } from "./server.ts";

const fixture = running(() => MemcachedServer.start("-m", "256"));

/** Each test has keys of its own. */
let tests = 0;

describe.each(Object.entries(clients))("%s", (name, make) => {
  let open: Open;
  beforeAll(() => {
    open = make(fixture.server.address);
  });
  afterAll(() => open?.close());

  storeSuite({
    test,
    describe,
    // A client that is set up otherwise sends the same.
    vectors: name.includes(" ") ? {} : few,
    create: () => memcached(open.client, { prefix: `test${++tests}`, stepTimeout: 60_000 }),
    stored: () => fixture.server.stored(`${open.namespace}test${tests}`),
    corrupt: () => (id) =>
      fixture.server.say(`set ${open.namespace}test${tests}:${id} 0 0 7\r\ngarbage\r\n`, /^STORED/),
    refusesLimitAll: "memcached has no atomic step on several keys",
    shardsApart: "shards have keys of their own, and are taken from in parts, not spread evenly in one step",
  });
});
