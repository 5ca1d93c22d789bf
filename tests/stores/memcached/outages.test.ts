/** One server that fails, beside others that do not; and one whose connections end for a while. */
import { type AddressInfo, connect, createServer } from "node:net";
import Memcached from "memcached";
import { expect, onTestFinished, test, vi } from "vitest";
import { defineLimits, HOUR } from "tidegate";
import { memcached } from "tidegate/memcached";
import { MemcachedServer } from "./server.ts";

/** As the guide sets them. */
const SETTINGS = { retry: 1000, failures: 1e6 };

const limits = { api: { kind: "token bucket", rate: 1e6, period: HOUR } } as const;

test("a stopped server of three degrades the calls on its own keys alone", async () => {
  const servers = await Promise.all([1, 2, 3].map(() => MemcachedServer.start()));
  for (const server of servers) onTestFinished(() => server.stop());
  const addresses = servers.map(({ address }) => address);
  const client = new Memcached(addresses, { retries: 0, retry: 10, failures: 1e6, timeout: 60_000 });
  onTestFinished(() => client.end());
  const ring = (client as unknown as { HashRing: { get(key: string): string } }).HashRing;
  const stopped = servers[0] as MemcachedServer;
  const isOn = (key: string) => ring.get(`tidegate:api:${key}`) === stopped.address;
  // Fewer on each server than the connections of the client.
  const keys: string[] = [];
  for (let i = 0; keys.length < 12; i++) {
    const key = `k${i}`;
    if (keys.filter((other) => isOn(other) === isOn(key)).length < (isOn(key) ? 4 : 8)) keys.push(key);
  }
  const store = memcached(client, { stepTimeout: 60_000 });
  const limiter = defineLimits(limits, { store, timeout: 1_000 });
  // On a slow machine too, only a call that waits for the stopped server runs into this timeout.
  const patient = defineLimits(limits, { store, timeout: 60_000 });
  stopped.signal("SIGSTOP");
  onTestFinished(() => stopped.signal("SIGCONT"));
  for (let turn = 0; turn < 20; turn++) {
    const answers = await Promise.all(keys.map((key) => (isOn(key) ? limiter : patient).limit("api", { key })));
    expect(answers.map(({ degraded }) => degraded === true)).toEqual(keys.map(isOn));
  }
});

test("calls on many keys of a stopped server hold up none on the others", async () => {
  const servers = await Promise.all([1, 2].map(() => MemcachedServer.start()));
  for (const server of servers) onTestFinished(() => server.stop());
  const addresses = servers.map(({ address }) => address);
  const client = new Memcached(addresses, { retries: 0, retry: 10, failures: 1e6, timeout: 120_000 });
  onTestFinished(() => client.end());
  const ring = (client as unknown as { HashRing: { get(key: string): string } }).HashRing;
  const stopped = servers[0] as MemcachedServer;
  const isOn = (key: string) => ring.get(`tidegate:api:${key}`) === stopped.address;
  const keys = Array.from({ length: 1000 }, (_, i) => `k${i}`);
  const store = memcached(client, { stepTimeout: 120_000 });
  const limiter = (timeout: number) => defineLimits(limits, { store, timeout, log: false });
  const decided = async (key: string, timeout: number) => !(await limiter(timeout).limit("api", { key })).degraded;
  const good = keys.find((key) => !isOn(key)) as string;
  expect(await decided(good, 60_000)).toBe(true);
  stopped.signal("SIGSTOP");
  const waiting = keys.filter(isOn).map((key) => decided(key, 120_000));
  expect(waiting.length).toBeGreaterThan(200);
  expect(await decided(good, 30_000)).toBe(true);
  stopped.signal("SIGCONT");
  expect(await Promise.all(waiting)).not.toContain(false);
});

test("the settings of the guide: a server whose connections were reset more often than five times is used again", async () => {
  const server = await MemcachedServer.start();
  onTestFinished(() => server.stop());
  let isDown = false;
  const proxy = createServer((socket) => {
    socket.on("error", () => {});
    if (isDown) return void socket.once("data", () => socket.resetAndDestroy());
    const upstream = connect(server.port, "127.0.0.1").on("error", () => {});
    socket.on("data", (data) => (isDown ? socket.resetAndDestroy() : upstream.write(data)));
    socket.on("close", () => upstream.destroy());
    upstream.pipe(socket);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void proxy.close());
  const client = new Memcached(`127.0.0.1:${(proxy.address() as AddressInfo).port}`, SETTINGS);
  onTestFinished(() => client.end());
  let issues = 0;
  client.on("issue", () => issues++);
  const limiter = defineLimits(limits, { store: memcached(client), log: false });
  const decides = async () => !(await limiter.limit("api", { key: "k" })).degraded;
  await vi.waitUntil(decides, { timeout: 60_000 });
  isDown = true;
  await vi.waitUntil(async () => !(await decides()) && issues > 5, { timeout: 60_000 });
  isDown = false;
  await vi.waitUntil(decides, { timeout: 60_000 });
});
