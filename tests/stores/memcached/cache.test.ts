/** It is a cache: what it drops, what it holds that is not ours, and what it must be able to do. */
import { describe, expect, onTestFinished, test } from "vitest";
import { DAY, defineLimits, MINUTE } from "tidegate";
import { memcached } from "tidegate/memcached";
import { clients } from "./clients.ts";
import { MemcachedServer } from "./server.ts";

const bucket = { kind: "token bucket", rate: 2, period: MINUTE } as const;
const limits = {
  login: bucket,
  monthly: { ...bucket, period: 40 * DAY },
  ages: { ...bucket, period: 2 ** 40 },
} as const;

/** A limiter on a server of its own. */
async function subject(make: (typeof clients)[string], ...args: string[]) {
  const server = await MemcachedServer.start(...args);
  onTestFinished(() => server.stop());
  const open = make(server.address);
  onTestFinished(() => open.close());
  const options = { store: memcached(open.client, { stepTimeout: 60_000 }), timeout: 60_000 };
  return { server, limiter: defineLimits(limits, options), key: (id: string) => `${open.namespace}tidegate:${id}` };
}

describe.each(Object.entries(clients))("%s", (_, make) => {
  test("a state is kept until a minute after it is full, be that in 30 days or later", async () => {
    const { server, limiter, key } = await subject(make);
    for (const name of ["login", "monthly", "ages"] as const) await limiter.limit(name, { key: "a b" });
    const ttl = async (name: string) => (await server.look(key(`${name}:a%20b`)))?.ttl;
    // Half of it is taken.
    expect(await ttl("login")).toBeGreaterThan(30);
    expect(await ttl("login")).toBeLessThanOrEqual(30 + 60);
    const days = 20 * 86_400;
    expect(await ttl("monthly")).toBeGreaterThan(days);
    expect(await ttl("monthly")).toBeLessThanOrEqual(days + 60);
    await limiter.limit("monthly", { key: "a b" });
    expect(await ttl("monthly")).toBeGreaterThan(2 * days);
    // The server's clock ticks in whole seconds, and late.
    expect(await ttl("monthly")).toBeLessThanOrEqual(2 * days + 60 + 3600 + 10);
    expect(await ttl("ages")).toBe(-1);
  });

  test("an evicted key starts full: it grants one capacity more", async () => {
    const { server, limiter, key } = await subject(make, "-m", "2", "-o", "no_lru_maintainer");
    const take = async (): Promise<boolean[]> => {
      const all = await Promise.all([1, 2, 3].map(() => limiter.limit("login", { key: "k" })));
      for (const { degraded, cause } of all) if (degraded === true) throw cause;
      return all.map(({ ok }) => ok);
    };
    expect(await take()).toEqual([true, true, false]);
    expect(await server.look(key("login:k"))).toBeDefined();
    // Memcached evicts among items of about one size: there is one for every size.
    const others = Array.from({ length: 200_000 }, (_, i) => {
      const value = "1".repeat(16 + (i % 10) * 8);
      return `set other:${i} 0 0 ${value.length} noreply\r\n${value}\r\n`;
    });
    await server.say(`${others.join("")}version\r\n`, /VERSION/);
    expect(await server.look(key("login:k"))).toBeUndefined();
    expect(await take()).toEqual([true, true, false]);
  });

  test("a server that keeps no versions is an error", async () => {
    const { server, limiter, key } = await subject(make, "-C");
    await server.say(`set ${key("login:k")} 0 0 3\r\n1 5\r\n`, /STORED/);
    const { degraded, cause } = await limiter.limit("login", { key: "k" });
    expect([degraded, String(cause)]).toEqual([true, expect.stringContaining("it must run without -C")]);
    const take = async () => (await limiter.limit("login", { key: "absent" })).degraded;
    expect([await take(), await take()]).toEqual([undefined, true]);
  });
});

test.each([
  ["compressed", 1, "junk"],
  ["JSON", 2, "{junk"],
])("a value that memcache-client cannot decode, as %s, concerns its key alone", async (_, flags, value) => {
  const { server, limiter, key } = await subject(clients["memcache-client"] as (typeof clients)[string]);
  await server.say(`set ${key("login:bad")} ${flags} 0 ${value.length}\r\n${value}\r\n`, /STORED/);
  const { cause } = await limiter.limit("login", { key: "bad" });
  expect(cause).toMatchObject({ scope: "key", message: expect.stringContaining("the client cannot decode the value") });
  await limiter.reset("login", { key: "bad" });
  expect(await limiter.limit("login", { key: "bad" })).toMatchObject({ ok: true, remaining: 1 });
});
