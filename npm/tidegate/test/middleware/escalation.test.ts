/** Keys that are denied again and again are blocked, for longer each time. */
import { describe, expect, test } from "vitest";
import { type Config, defineLimits, HOUR, memory, MINUTE, SECOND } from "../../src/index.ts";
import { decisionOf, rateLimit } from "../../src/middleware/fetch.ts";
import type { EscalatingBlock } from "../../src/middleware/escalation.ts";
import { observe } from "../../src/observe/index.ts";
import { behind } from "../behind.ts";
import { later } from "./later.ts";

const START = 1_700_000_000_000;
const BUCKET = { kind: "token bucket", rate: 1, period: SECOND, capacity: 2 } as const;
const BLOCK: EscalatingBlock = { after: 3, for: ["1m", 10 * MINUTE], within: "1d" };

interface Setting {
  config?: Config;
  block?: EscalatingBlock;
  more?: object;
  isAsync?: boolean;
}

/** A handler behind the limit, and its clock. */
function limited({ config = BUCKET, block = BLOCK, more = {}, isAsync = false }: Setting = {}) {
  const clock = { now: START };
  const limits = defineLimits({ api: config }, { store: isAsync ? later() : memory(), now: () => clock.now });
  const handler = rateLimit(limits, { name: "api", key: "ann", block, ...more } as never, () => new Response("hello"));
  const send = async () => {
    const request = new Request("https://app.example/");
    const { status } = await handler(request);
    const { retryAfter } = decisionOf(request) ?? {};
    return { status, retryAfter };
  };
  /** Takes all tokens, and is denied so many times; returns the last decision. */
  const denied = async (times: number) => {
    while ((await send()).status === 200);
    for (let i = 2; i < times; i++) await send();
    return times === 1 ? undefined : send();
  };
  return { clock, limits, send, denied };
}

describe.each([false, true])("blocks, with an asynchronous store: %j", (isAsync) => {
  test("begin with the last of so many denials, and last longer each time", async () => {
    const { clock, send, denied } = limited({ isAsync });
    expect(await denied(2)).toEqual({ status: 429, retryAfter: SECOND });
    expect(await send()).toEqual({ status: 429, retryAfter: MINUTE });
    for (const length of [10 * MINUTE, 10 * MINUTE]) {
      clock.now += (await send()).retryAfter as number;
      expect(await denied(3)).toEqual({ status: 429, retryAfter: length });
    }
  });

  test("end at the millisecond that the denial names, and denials during a block do not count", async () => {
    const { clock, send, denied } = limited({ isAsync });
    await denied(3);
    for (let i = 0; i < 19; i++) expect(await send()).toEqual({ status: 429, retryAfter: MINUTE });
    clock.now += MINUTE - 1;
    expect(await send()).toEqual({ status: 429, retryAfter: 1 });
    clock.now += 1;
    expect((await send()).status).toBe(200);
    expect(await denied(2)).toEqual({ status: 429, retryAfter: SECOND });
    expect((await send()).retryAfter).toBe(10 * MINUTE);
  });

  test("begin once, however many requests are denied at the same time", async () => {
    const { send, denied } = limited({ isAsync });
    await denied(1);
    await Promise.all(Array.from({ length: 30 }, send));
    expect((await send()).retryAfter).toBe(MINUTE);
  });

  test("are forgotten, as denials are", async () => {
    const { clock, denied, send } = limited({ isAsync });
    await denied(2);
    clock.now += 24 * HOUR;
    expect(await denied(2)).toEqual({ status: 429, retryAfter: SECOND });
    expect((await send()).retryAfter).toBe(MINUTE);
    clock.now += 48 * HOUR;
    expect((await denied(3))?.retryAfter).toBe(MINUTE);
  });

  test("last longer each time also where they take longer than `within`", async () => {
    const lengths = [HOUR, 24 * HOUR, 7 * 24 * HOUR];
    const { clock, denied } = limited({ isAsync, block: { after: 3, for: lengths } });
    for (const length of [...lengths, 7 * 24 * HOUR]) {
      expect(await denied(3)).toEqual({ status: 429, retryAfter: length });
      clock.now += length;
    }
  });

  test("are forgotten at the same time, however long the later ones would be", async () => {
    const { clock, denied } = limited({ isAsync, block: { after: 3, for: ["1m", "2m", "30d"], within: "1h" } });
    for (const length of [MINUTE, 2 * MINUTE]) {
      expect((await denied(3))?.retryAfter).toBe(length);
      clock.now += HOUR + MINUTE - 1;
    }
    clock.now += 2 * MINUTE;
    for (const length of [MINUTE, 2 * MINUTE]) {
      expect((await denied(3))?.retryAfter).toBe(length);
      clock.now += length;
    }
  });

  test("are forgotten at the same time, however many there were", async () => {
    const { clock, denied } = limited({ isAsync });
    for (let i = 0; i < 9; i++) clock.now += (await denied(3))?.retryAfter ?? 0;
    expect((await denied(3))?.retryAfter).toBe(10 * MINUTE);
    clock.now += 24 * HOUR;
    expect((await denied(3))?.retryAfter).toBe(MINUTE);
  });
});

test("blocks begin once where denials from before a block are counted while it begins", async () => {
  let random = 1;
  /** As on the connections of many processes, whose calls overtake each other. */
  const trip = async (): Promise<void> => {
    random = (random * 16_807) % 2_147_483_647;
    for (let turns = random % 60; turns > 0; turns--) await undefined;
  };
  const store = behind(trip, "far");
  const clock = { now: START };
  const limits = defineLimits({ api: BUCKET }, { store, now: () => clock.now });
  const handler = rateLimit(limits, { name: "api", key: "ann", block: BLOCK }, () => new Response("hello"));
  for (const length of [MINUTE, 10 * MINUTE]) {
    await Promise.all(
      Array.from({ length: 100 }, async () => {
        for (let i = 0; i < 20; i++) await handler(new Request("https://app.example/"));
      }),
    );
    expect((await limits.check("api", { key: "ann" })).retryAfter).toBe(length);
    clock.now += length;
  }
});

test("no other block begins while one lasts, also where the count of its denials is reset in between", async () => {
  const { clock, limits, send, denied } = limited();
  await denied(3);
  clock.now += 2 * SECOND;
  // By a process whose calls arrive late.
  const config = { kind: "fixed window", rate: 3, period: 24 * HOUR, start: "first request" } as const;
  limits.reset("api.denials", { key: "ann", config });
  for (let i = 0; i < 3; i++) expect(await send()).toEqual({ status: 429, retryAfter: MINUTE - 2 * SECOND });
});

test("the response that begins a block has the fields of the block", async () => {
  const limits = defineLimits({ api: BUCKET }, { now: () => START });
  const options = { name: "api", key: "ann", block: { after: 1, for: "1m" }, jitter: 0 } as const;
  const handler = rateLimit(limits, options, () => new Response("hello"));
  const fields = async () => {
    const { status, headers } = await handler(new Request("https://app.example/"));
    return [status, headers.get("ratelimit"), headers.get("retry-after")];
  };
  await fields();
  await fields();
  const begun = await fields();
  expect(begun).toEqual([429, '"api";r=0;t=60', "60"]);
  expect(await fields()).toEqual(begun);
});

test("a store that fails while a block begins leaves the request denied", async () => {
  const store = later();
  const limits = defineLimits({ api: { ...BUCKET, capacity: 1 } }, { store, now: () => START, log: false });
  const options = { name: "api", key: "ann", block: { after: 1, for: "1m" } } as const;
  const handler = rateLimit(limits, options, () => new Response("hello"));
  const send = async () => (await handler(new Request("https://app.example/"))).status;
  expect(await send()).toBe(200);
  store.reset = async () => Promise.reject(new Error("connection refused"));
  expect([await send(), await send()]).toEqual([429, 429]);
});

test.each<[string, (name: string, op: string) => boolean, number]>([
  ["the store does not count the denial, and no block begins", (name) => name === "api.denials", SECOND],
  ["the store does not decide whether a block begins, and one does", (name) => name === "api.begins", MINUTE],
  ["the store does not count the block, and the first length is its length", (name) => name === "api.blocks", MINUTE],
  ["the store does not block, and the denial is as it was", (name, op) => name === "api" && op === "block", SECOND],
])("with a failing store, %s", async (_, fails, retryAfter) => {
  for (const onStoreError of ["deny", { local: 1 }] as const) {
    const store = later();
    const decide = store.decide.bind(store);
    store.decide = (call, now) =>
      fails(call.limit.name, call.op) ? Promise.reject(new Error("connection reset")) : decide(call, now);
    const options = { store, now: () => START, onStoreError, log: false } as const;
    const limits = defineLimits({ api: { ...BUCKET, capacity: 1 } }, options);
    const block = { after: 1, for: ["1m", "1h"] } as const;
    const handler = rateLimit(limits, { name: "api", key: "ann", block }, () => new Response("hello"));
    await handler(new Request("https://app.example/"));
    const request = new Request("https://app.example/");
    expect((await handler(request)).status).toBe(429);
    expect(decisionOf(request)).toMatchObject({ retryAfter });
  }
});

test("a denial names the time at which its request is granted, where that is after the block", async () => {
  const { send } = limited({
    config: { ...BUCKET, capacity: 90 },
    more: { count: 90 },
    block: { after: 1, for: "1m" },
  });
  expect((await send()).status).toBe(200);
  expect(await send()).toEqual({ status: 429, retryAfter: 90 * SECOND });
});

test("unblock ends a block", async () => {
  const { limits, denied, send } = limited();
  await denied(3);
  await limits.unblock("api", { key: "ann" });
  expect((await send()).status).toBe(200);
});

test("requests for more than the capacity do not count", async () => {
  const { limits, send } = limited({ more: { count: 3 } });
  for (let i = 0; i < 9; i++) expect(await send()).toEqual({ status: 400, retryAfter: undefined });
  expect((await limits.check("api", { key: "ann" })).ok).toBe(true);
});

test("shadow mode blocks nothing", async () => {
  const { limits, send } = limited({ more: { shadow: true } });
  for (let i = 0; i < 20; i++) expect((await send()).status).toBe(200);
  expect((await limits.check("api", { key: "ann" })).retryAfter).toBe(SECOND);
});

test("of several limits, the one that denies is blocked", async () => {
  const clock = { now: START };
  const limits = defineLimits({ api: BUCKET, day: { ...BUCKET, capacity: 100 } }, { now: () => clock.now });
  const rules = [
    { name: "day", key: "ann" },
    { name: "api", key: "ann" },
  ] as const;
  const handler = rateLimit(limits, { limits: rules, block: BLOCK }, () => new Response("hello"));
  const statuses: number[] = [];
  for (let i = 0; i < 5; i++) statuses.push((await handler(new Request("https://app.example/"))).status);
  expect(statuses).toEqual([200, 200, 429, 429, 429]);
  expect(limits.check("api", { key: "ann" }).retryAfter).toBe(MINUTE);
  expect(limits.check("day", { key: "ann", count: 0 }).remaining).toBe(98);
});

test("a name that leaves no room for the names of the counts is refused when the middleware is made", () => {
  const name = "n".repeat(57);
  const limits = defineLimits({ [name]: BUCKET });
  const made = () => rateLimit(limits, { name, key: "ann", block: BLOCK }, () => new Response("hello"));
  expect(made).toThrow("`name` must be at most 56 characters with `block`");
});

test.each<[unknown, string]>([
  [3, '`block` must be { after, for }, such as { after: 5, for: ["1m", "10m"] }; got 3'],
  [{ for: "1m" }, "`block.after` must be an integer from 1 to 1000000; got undefined"],
  [{ after: 0, for: "1m" }, "`block.after` must be an integer from 1 to 1000000; got 0"],
  [{ after: 1 }, "`block.for` must be"],
  [{ after: 1, for: [] }, "`block.for` must be a length, or an array of 1 to 100 of them"],
  [{ after: 1, for: Array(101).fill("1m") }, "`block.for` must be a length, or an array of 1 to 100 of them"],
  [{ after: 1, for: ["1m", "soon"] }, "`block.for` must be"],
  [{ after: 1, for: "1m", within: 0 }, "`block.within` must be"],
  [{ after: 1, for: "1m", times: 2 }, "`times` must be absent: block has after, for, within"],
])("the option %j is refused when the middleware is made", (block, message) => {
  expect(() => limited({ block: block as never })).toThrow(message);
});

test("observers get the block, and not what counts towards it", async () => {
  const events: string[] = [];
  const inner = defineLimits({ api: BUCKET }, { now: () => START });
  const limits = [1, 2].reduce((limits, observer) => {
    return observe(limits, ({ operation, name, decision }) =>
      events.push(`${observer} ${operation} ${name} ${decision.ok}`),
    );
  }, inner);
  const handler = rateLimit(limits, { name: "api", key: "ann", block: { after: 1, for: "1m" } }, () => new Response());
  for (let i = 0; i < 4; i++) await handler(new Request("https://app.example/"));
  const one = ["limit api true", "limit api true", "limit api false", "block api true", "limit api false"];
  expect(events).toEqual(one.flatMap((event) => [`1 ${event}`, `2 ${event}`]));
});

const observed = () => observe(defineLimits({ api: BUCKET }, { now: () => START }), () => {});
type Observed = ReturnType<typeof observed>;

test.each<[string, (inner: Observed, limit: Observed["limit"]) => Observed]>([
  ["Object.create", (inner, limit) => Object.assign(Object.create(inner), { limit })],
  [
    "Proxy",
    (inner, limit) => new Proxy(inner, { get: (_, name) => (name === "limit" ? limit : Reflect.get(inner, name)) }),
  ],
])("a wrapper of an observed limiter, by %s, has the calls that count towards a block", async (_, wrap) => {
  const inner = observed();
  const names: string[] = [];
  const limits = wrap(inner, (...call: unknown[]) => {
    names.push(String(call[0]));
    return Reflect.apply(inner.limit, inner, call);
  });
  const handler = rateLimit(limits, { name: "api", key: "ann", block: { after: 1, for: "1m" } }, () => new Response());
  for (let i = 0; i < 3; i++) await handler(new Request("https://app.example/"));
  expect(names).toEqual(["api", "api", "api", "api.denials", "api.begins", "api.blocks"]);
});
