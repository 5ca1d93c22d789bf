/** What every middleware does with a request, on the gate that all of them share. */
import { describe, expect, test, vi } from "vitest";
import { defineLimits, MINUTE } from "../../src/index.ts";
import type { Incoming } from "../../src/middleware/client-key.ts";
import { type Admission, Gate } from "../../src/middleware/gate.ts";
import { overridden, type Options } from "../../src/middleware/options.ts";

const NOW = 1_800_000_000_000;
const bucket = { kind: "token bucket", rate: 5, period: MINUTE } as const;
type Name = "api" | "day" | "constructor";
type Given = Options<object, Name, () => void>;

function start(options: object) {
  const limits = defineLimits(
    { api: bucket, day: { ...bucket, rate: 100, capacity: 3 }, constructor: bucket },
    { now: () => NOW },
  );
  const made = new Gate(limits, options as Given);
  const admit = (incoming: Incoming = { address: "192.0.2.1" }): Promise<Admission<object> | undefined> =>
    Promise.resolve(made.admit({}, incoming));
  const left = (name: Name = "api", key = "192.0.2.1"): number => limits.getValue(name, { key }).value;
  return { limits, made, admit, left };
}

test.each([true, Promise.resolve(true)])("a request that is skipped is not decided: %s", async (skipped) => {
  const { admit, left } = start({ name: "api", skip: () => skipped });
  expect(await admit()).toBeUndefined();
  expect(left()).toBe(5);
});

test("a request is decided once by one gate, and by each of two", async () => {
  const { made, left } = start({ name: "api" });
  const [request, other] = [{}, {}];
  for (const once of [request, request, other, undefined, undefined]) {
    await made.admit({}, { address: "192.0.2.1" }, once);
  }
  expect(left()).toBe(1);
});

test("a key function that returns an empty key fails the request", async () => {
  const { admit } = start({ name: "api", key: () => "" });
  await expect(async () => admit()).rejects.toThrow("`key` must be a string that is not empty, from the key function");
});

test("a request beyond the tokens is reserved where the rule has reserve", async () => {
  const { admit } = start({ name: "api", reserve: true, count: 5 });
  expect((await admit())?.decision).toMatchObject({ ok: true, reserved: false });
  expect((await admit())?.decision).toMatchObject({ ok: true, reserved: true, retryAt: NOW + MINUTE });
});

test("a client behind a platform's header has its own limit on a connection that others use", async () => {
  const { admit, left } = start({ name: "api", client: { header: "cf-connecting-ip" } });
  const socket = { remoteAddress: "10.0.0.1" };
  for (const client of ["192.0.2.1", "192.0.2.2", "192.0.2.1"]) {
    await admit({ socket, headers: { "cf-connecting-ip": client } });
  }
  expect([left("api", "192.0.2.1"), left("api", "192.0.2.2")]).toEqual([3, 4]);
});

test("the address that a framework found has the prefix of the client option", async () => {
  const { admit, left } = start({ name: "api", client: { prefix: 64 } });
  for (const trusted of ["2001:db8:0:1::1", "2001:db8:0:2::1", "2001:db8:0:1::2"]) await admit({ trusted });
  expect([left("api", "2001:db8:0:1::/64"), left("api", "2001:db8:0:2::/64")]).toEqual([3, 4]);
});

describe("of several limits", () => {
  const limits = [{ name: "api" }, { name: "day" }];

  test("the decision is the one with the fewest tokens left", async () => {
    const { admit } = start({ limits });
    expect((await admit())?.decision).toMatchObject({ ok: true, remaining: 2, policy: { name: "day" } });
  });

  test("of denials it is the one with the longest wait", async () => {
    const { admit } = start({ limits: limits.map((limit) => ({ ...limit, count: 3 })) });
    await admit();
    const denied = await admit();
    // 1 token of 5 per minute is 12 s; 3 tokens of 100 per minute are 1.8 s.
    expect(denied?.decision).toMatchObject({ ok: false, retryAfter: 12_000, policy: { name: "api" } });
  });

  test("of denials one that is never granted is longer than any wait", async () => {
    const { admit, limits } = start({ limits: [{ name: "day" }, { name: "api", count: 6 }] });
    limits.limit("day", { key: "192.0.2.1", count: 3 });
    expect((await admit())?.decision).toMatchObject({ ok: false, retryAt: undefined, policy: { name: "api" } });
  });

  test("of grants it has the time of the last reservation, whichever limit has the fewest tokens left", async () => {
    const reserved = { name: "api", count: 6, reserve: true };
    const { admit } = start({ limits: [{ name: "day", count: 3 }, reserved] });
    const granted = await admit();
    // 1 token of 5 per minute is owed.
    expect(granted?.decision).toMatchObject({ ok: true, retryAfter: 12_000, policy: { name: "day" } });
  });
});

test("a route that names its limit takes none of the shared rule's fields", () => {
  const shared = { name: "api", count: 5, key: "k", reserve: true, statusCode: 420 };
  expect(overridden(shared, { name: "day" })).toEqual({ name: "day", statusCode: 420 });
  expect(overridden(shared, { limits: [] })).toEqual({ limits: [], statusCode: 420 });
  expect(overridden(shared, { count: 2 })).toEqual({ ...shared, count: 2 });
});

describe("the wait of a denial", () => {
  test("has up to half of it as jitter, at most 30 s, the same for a client, also in its text", async () => {
    const slow = { name: "slow", config: { kind: "token bucket", rate: 1, period: 60 * MINUTE } };
    const waits = new Set<number>();
    for (let client = 0; client < 300; client++) {
      const { admit } = start(slow);
      const incoming = { address: `192.0.2.${client % 100}` };
      await admit(incoming);
      const { headers, problem } = (await (await admit(incoming))?.denial()) ?? {};
      const seconds = Number(headers?.["Retry-After"]);
      expect(seconds).toBeGreaterThanOrEqual(3600);
      expect(seconds).toBeLessThanOrEqual(3630);
      expect(problem?.detail).toBe(`"slow" has too few tokens left. Retry in ${seconds} s.`);
      waits.add(seconds);
    }
    // 100 clients on 31 whole seconds.
    expect(waits.size).toBeGreaterThan(15);
    expect(Math.max(...waits)).toBeGreaterThan(3625);
  });
});

test("of a limit that all share, the waits of clients differ by their addresses, and each client's stays the same", async () => {
  const slow = { name: "slow", config: { kind: "token bucket", rate: 1, period: 60 * MINUTE } };
  const address = (client: number) => `192.0.2.${client}`;
  const without = {
    get address(): string {
      throw new Error("no address at build time");
    },
  };
  for (const [options, incomingOf] of [
    [{ ...slow, key: false }, (client: number) => ({ address: address(client) })],
    [
      { limits: [slow, { ...slow, name: "other" }].map((rule) => ({ ...rule, key: false })) },
      (client: number) => ({ address: address(client) }),
    ],
    [{ ...slow, key: false }, (client: number) => ({ address: "10.0.0.1", trusted: address(client) })],
    [
      { ...slow, key: false, client: { trust: 1 } },
      (client: number) => ({ address: "10.0.0.1", headers: { "x-forwarded-for": address(client) } }),
    ],
  ] as const) {
    const { admit } = start(options);
    const waitOf = async (incoming: Incoming) => (await (await admit(incoming))?.denial())?.headers["Retry-After"];
    await admit(incomingOf(0));
    const waits = new Set<unknown>();
    for (let client = 0; client < 100; client++) {
      const wait = await waitOf(incomingOf(client));
      expect(await waitOf(incomingOf(client))).toBe(wait);
      waits.add(wait);
    }
    expect(waits.size).toBeGreaterThan(15);
    expect(Number(await waitOf(without))).toBeGreaterThanOrEqual(3600);
  }
});

describe("settling", () => {
  const ended = { status: 200, aborted: false };

  test("a denied request that shadow mode let pass took nothing, so nothing is given back", async () => {
    const { admit, left } = start({ name: "api", count: 5, shadow: true, settle: () => 0 });
    await admit();
    const denied = await admit();
    expect([denied?.decision.ok, denied?.blocked]).toEqual([false, false]);
    await denied?.settle(ended);
    expect(left()).toBe(0);
  });

  test.each([
    ["skipFailedRequests", { status: 200, aborted: true }, 5],
    ["skipFailedRequests", { status: 400, aborted: false }, 5],
    ["skipFailedRequests", { status: 399, aborted: false }, 4],
    ["skipSuccessfulRequests", { status: 200, aborted: true }, 4],
    ["skipSuccessfulRequests", { status: 399, aborted: false }, 5],
    ["skipSuccessfulRequests", { status: 400, aborted: false }, 4],
  ])("%s, after %j: %i tokens are left", async (option, end, tokens) => {
    const { admit, left } = start({ name: "api", [option]: true });
    await (await admit())?.settle(end);
    expect(left()).toBe(tokens);
  });

  test("the end and the decision reach the function", async () => {
    const settle = vi.fn(() => 3);
    const { admit, left } = start({ name: "api", settle });
    const admission = await admit();
    await admission?.settle({ status: 499, aborted: true });
    const { decision } = admission as Admission<object>;
    expect(settle).toHaveBeenCalledExactlyOnceWith({ status: 499, aborted: true, request: {}, decision });
    expect(left()).toBe(2);
  });

  test("an object of tokens by name changes only the limits that it names", async () => {
    const errors = vi.spyOn(console, "error").mockReturnValue();
    const { admit, left } = start({ limits: [{ name: "api" }, { name: "constructor" }], settle: () => ({ api: 4 }) });
    await (await admit())?.settle(ended);
    expect([left("api"), left("constructor")]).toEqual([1, 4]);
    expect(errors).not.toHaveBeenCalled();
  });

  test("a settlement of null is reported by name, and changes nothing", async () => {
    const onError = vi.fn();
    const { admit, left } = start({ name: "api", settle: () => null, onError });
    await (await admit())?.settle(ended);
    const message = expect.stringMatching(/^`settle` must be tokens .*; got null$/);
    expect([onError.mock.calls, left("api")]).toEqual([[[expect.objectContaining({ message })]], 4]);
  });

  test("only the first error is logged", async () => {
    const errors = vi.spyOn(console, "error").mockReturnValue();
    const { admit } = start({ name: "api", settle: () => -1 });
    for (let i = 0; i < 3; i++) await (await admit())?.settle(ended);
    expect(errors).toHaveBeenCalledTimes(1);
  });
});
