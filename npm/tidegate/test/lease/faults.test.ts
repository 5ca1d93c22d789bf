/** Leases while stores fail, nodes die, clocks differ, and other operations interleave: no token is granted twice, and no request starves. */
import { expect, test, vi } from "vitest";
import { type Decision, defineLimits, HOUR, type Limiter, memory } from "../../src/index.ts";
import type { AsyncStore, Call } from "../../src/stores/contract.ts";
import { transactional } from "../../src/stores/index.ts";
import { still, World } from "./world.ts";

test("if the store fails in mid-refill, leased tokens are spent, and onStoreError decides on the rest", async () => {
  const world = new World(still(100), () => 1);
  const node = world.node();
  for (let i = 0; i < 3; i++) {
    void world.limit(node);
    await world.pass(3);
  }
  const held = world.unspent;
  expect(held).toBeGreaterThan(0);
  const answers: Decision[] = [];
  const burst = Array.from({ length: 40 }, () => world.limit(node).then((decision) => answers.push(decision)));
  world.down = true;
  await world.pass(5);
  await Promise.all(burst);
  expect(answers.filter(({ ok }) => ok).length).toBeLessThanOrEqual(held);
  expect(answers.filter(({ ok, degraded }) => !ok && degraded === true).length).toBeGreaterThan(0);
  world.down = false;
  world.clock.advance(100);
  void world.limit(node);
  await world.pass(5);
  expect(world.unspent).toBeGreaterThanOrEqual(0);
});

test("of 256 requests at one time with counts larger than the lease, exactly the tokens available are granted", async () => {
  for (const count of [7, 30, 100]) {
    const world = new World(still(1000), () => 2);
    const node = world.node();
    void world.limit(node);
    await world.pass(6);
    const answers: Decision[] = [];
    for (let i = 0; i < 256; i++) void world.limit(node, { count }).then((decision) => answers.push(decision));
    await world.pass(100);
    expect(answers.length).toBe(256);
    expect(answers.filter(({ ok }) => ok).length).toBe(Math.floor(999 / count));
  }
});

test("no token is granted twice with give, charge and block between leased requests of two nodes", async () => {
  const world = new World(still(200), () => 1);
  const nodes = [world.node(), world.node()] as const;
  const steps = [
    () => nodes[0].charge("hot", { count: 10 }),
    () => nodes[1].give("hot", { count: 5 }),
    () => nodes[0].release(),
    () => nodes[1].block("hot", { for: 1 }),
  ];
  let at = 0;
  await world.pass(60, () => {
    for (const node of nodes) for (let i = 0; i < 3; i++) void world.limit(node);
    if (++at % 5 === 0) void steps[(at / 5) % steps.length]?.();
  });
  await world.pass(20);
  expect(world.granted).toBeGreaterThan(50);
  // Each step runs three times.
  expect(world.granted).toBeLessThanOrEqual(200 - 3 * 10 + 3 * 5);
});

test("after release, requests that still wait for a refill leave no leased tokens behind", async () => {
  for (let delay = 0; delay < 12; delay++) {
    const world = new World({ kind: "token bucket", rate: 1000, period: 1000 }, () => 2);
    const node = world.node();
    let at = 0;
    await world.pass(40 + delay, () => {
      for (let i = 0; i < 5; i++) if (at % 3 !== 1) void world.limit(node);
      at++;
    });
    void world.limit(node, { count: 300 });
    void node.release();
    await world.pass(20);
    expect([delay, world.unspent]).toEqual([delay, 0]);
  }
});

test("a round trip that never ends, as of a Worker's request that was cut off, is replaced after 10 s", async () => {
  vi.useFakeTimers({ now: 1_000_000 });
  let sent = 0;
  const store = {
    ...transactional({ name: "far", transaction: () => Promise.reject(new Error("unused")) }),
    lease: true,
    decide: () => {
      sent++;
      return new Promise<Decision>(() => {});
    },
  };
  // The timer of the deadline is cut off, too.
  const limits = defineLimits({ hot: still(10) }, { store, timeout: 2 ** 31 - 1 });
  for (const [after, trips] of [
    [0, 1],
    [9900, 1],
    [100, 2],
  ] as const) {
    await vi.advanceTimersByTimeAsync(after);
    void limits.limit("hot");
    await vi.advanceTimersByTimeAsync(0);
    expect(sent).toBe(trips);
  }
});

test("a refill that arrives after the deadline is spent by later requests", async () => {
  vi.useFakeTimers({ now: 1_000_000 });
  let answer: () => void = () => {};
  let slow = false;
  const plain = defineLimits({ hot: still(10) });
  const store = {
    ...transactional({ name: "far", transaction: () => Promise.reject(new Error("unused")) }),
    lease: true,
    decide: (call: { op: "take" | "check"; count: number }) => {
      const decision =
        call.op === "take" ? plain.limit("hot", { count: call.count }) : plain.check("hot", { count: 0 });
      return new Promise<Decision>((resolve) => {
        answer = () => resolve(decision);
        if (!slow) answer();
      });
    },
  };
  const limits = defineLimits({ hot: still(10) }, { store: store as never, timeout: 20, log: false });
  slow = true;
  const several = Promise.all([1, 2, 3].map((count) => limits.limit("hot", { count })));
  await vi.advanceTimersByTimeAsync(30);
  expect((await several).map(({ ok, degraded }) => [ok, degraded])).toEqual([
    [false, true],
    [false, true],
    [false, true],
  ]);
  answer();
  await vi.advanceTimersByTimeAsync(0);
  // The six tokens of the three requests are leased by now, and need no round trip.
  slow = true;
  for (let i = 0; i < 6; i++) expect(await limits.limit("hot")).toMatchObject({ ok: true });
});

test.each([
  ["limitAll", (limits) => limits.limitAll([{ name: "hot" }, { name: "other" }])],
  ["a reservation", (limits) => limits.limit("hot", { reserve: true })],
  ["block", (limits) => limits.block("hot", { for: "1m" })],
] as const satisfies readonly (readonly [string, (limits: Limiter<"hot" | "other", AsyncStore>) => unknown])[])(
  "%s ends at its deadline, though it waits for a refill and the return of leased tokens",
  async (_, call) => {
    vi.useFakeTimers({ now: 1_000_000 });
    const plain = defineLimits({ hot: still(100) });
    let answers = true;
    const sent: string[] = [];
    const store = {
      ...transactional({ name: "far", transaction: () => Promise.reject(new Error("unused")) }),
      lease: true,
      decide: ({ op, count }: Call) => {
        sent.push(op);
        return answers ? Promise.resolve(plain.limit("hot", { count })) : new Promise<never>(() => {});
      },
      decideAll: () => new Promise<never>(() => void sent.push("all")),
    };
    const configs = { hot: still(100), other: still(100) };
    const limits = defineLimits(configs, { store: store as never as AsyncStore, timeout: 200, log: false });
    for (let i = 0; i < 10; i++) {
      expect(await limits.limit("hot")).toMatchObject({ ok: true });
      await vi.advanceTimersByTimeAsync(1);
    }
    answers = false;
    void limits.limit("hot", { count: 50 });
    await vi.advanceTimersByTimeAsync(100);
    sent.length = 0;
    const began = performance.now();
    const ended = Promise.resolve(call(limits)).then((decision) => [
      (decision as Decision).ok,
      performance.now() - began,
    ]);
    await vi.advanceTimersByTimeAsync(1000);
    expect(await ended).toEqual([false, 200]);
    // After the refill, at 100 ms, the leased tokens return for the rest of the time; the call itself was not sent.
    expect(sent).toEqual(["give"]);
  },
);

test("a denial that the store remembers does not decide on a reservation for which leased tokens return", async () => {
  const plain = defineLimits({ hot: still(100) });
  let remembered: Decision | undefined = plain.check("hot", { count: 101 });
  const store = {
    ...transactional({ name: "far", transaction: () => Promise.reject(new Error("unused")) }),
    lease: true,
    recall: ({ reserve }: Call) => (reserve ? remembered : undefined),
    decide: ({ op, count, reserve }: Call) => {
      if (op !== "give") return Promise.resolve(plain.limit("hot", { count, reserve }));
      remembered = undefined;
      return Promise.resolve(plain.give("hot", { count }));
    },
  };
  const limits = defineLimits({ hot: still(100) }, { store: store as never as AsyncStore });
  for (let i = 0; i < 10; i++) await limits.limit("hot");
  expect(await limits.limit("hot", { count: 50, reserve: true })).toMatchObject({ ok: true });
  expect(remembered).toBe(undefined);
});

test("the time in which the client connects does not count for calls on a leased key", async () => {
  vi.useFakeTimers({ now: 1_000_000 });
  const plain = defineLimits({ hot: still(100) });
  const store = {
    ...transactional({ name: "far", transaction: () => Promise.reject(new Error("unused")) }),
    lease: true,
    connecting: new Promise((resolve) => setTimeout(resolve, 500)),
    decide: ({ count, reserve }: Call) => Promise.resolve(plain.limit("hot", { count, reserve })),
  };
  const limits = defineLimits({ hot: still(100) }, { store: store as never as AsyncStore, timeout: 200, log: false });
  const calls = [limits.limit("hot"), limits.limit("hot", { reserve: true }), limits.limit("hot")];
  await vi.advanceTimersByTimeAsync(600);
  expect((await Promise.all(calls)).map(({ ok, degraded }) => [ok, degraded])).toEqual([
    [true, undefined],
    [true, undefined],
    [true, undefined],
  ]);
});

test("a check that arrives after its deadline decides on later requests", async () => {
  vi.useFakeTimers({ now: 1_000_000 });
  const plain = defineLimits({ hot: still(10) });
  const sent: (() => void)[] = [];
  const store = {
    ...transactional({ name: "far", transaction: () => Promise.reject(new Error("unused")) }),
    lease: true,
    decide: ({ op, count }: Call) => {
      const decision = op === "take" ? plain.limit("hot", { count }) : plain.check("hot", { count });
      return new Promise<Decision>((resolve) => sent.push(() => resolve(decision)));
    },
  };
  const limits = defineLimits({ hot: still(10) }, { store: store as never, timeout: 20, log: false });
  const first = limits.limit("hot");
  await vi.advanceTimersByTimeAsync(0);
  sent.shift()?.();
  expect(await first).toMatchObject({ ok: true });
  // Another process takes the rest; the state of the lease is too old to deny.
  plain.limit("hot", { count: 9 });
  await vi.advanceTimersByTimeAsync(1000);
  const checked = limits.check("hot", { count: 5 });
  await vi.advanceTimersByTimeAsync(30);
  expect(await checked).toMatchObject({ ok: false, degraded: true });
  sent.shift()?.();
  await vi.advanceTimersByTimeAsync(0);
  const denied = limits.limit("hot", { count: 5 });
  await vi.advanceTimersByTimeAsync(30);
  const { ok, degraded, remaining } = await denied;
  expect([ok, degraded, remaining, sent.length]).toEqual([false, undefined, 0, 0]);
});

test("limitAll on leases that expire while it runs grants what it decided on", async () => {
  const truth = memory();
  const store = {
    ...transactional({ name: "far", transaction: () => Promise.reject(new Error("unused")) }),
    lease: true,
    decide: (call: Call) => Promise.resolve(truth.decide(call, Date.now())),
  };
  const limits = defineLimits({ hot: still(100) }, { store });
  const both = ["a", "b"].map((key) => ({ name: "hot" as const, key }));
  for (let i = 0; i < 10; i++) for (const { key } of both) await limits.limit("hot", { key });
  // Leased tokens are spent for two seconds.
  const now = Date.now();
  vi.spyOn(Date, "now")
    .mockReturnValueOnce(now)
    .mockReturnValueOnce(now)
    .mockReturnValue(now + 5000);
  expect(await limits.limitAll(both)).toMatchObject({ ok: true });
});

test("after a give on a slow network, requests are granted from retryAt on", async () => {
  vi.useFakeTimers();
  const truth = memory();
  const oneWay = () => new Promise((resolve) => setTimeout(resolve, 40));
  const store = {
    ...transactional({ name: "far", transaction: () => Promise.reject(new Error("unused")) }),
    lease: true,
    async decide(call: Call) {
      await oneWay();
      const decision = truth.decide(call, Date.now());
      await oneWay();
      return decision;
    },
  };
  const limits = defineLimits({ hot: { kind: "token bucket", rate: 1, period: 1000 } }, { store });
  const within = async (decision: Promise<Decision>): Promise<Decision> => {
    await vi.advanceTimersByTimeAsync(80);
    return decision;
  };
  expect((await within(limits.limit("hot"))).ok).toBe(true);
  const { value, ts } = await within(limits.give("hot", { count: 0.85 }));
  await vi.advanceTimersByTimeAsync(Math.ceil(ts + (1 - value) * 1000) - Date.now());
  expect((await within(limits.limit("hot"))).ok).toBe(true);
});

test("100 ms after a failure tokens are taken ahead again, also where this process's clock was set back", async () => {
  vi.useFakeTimers({ now: 10_000_000 });
  const began = performance.now();
  const plain = defineLimits({ hot: still(1000) }, { now: () => 10_000_000 + (performance.now() - began) });
  let [calls, mode] = [0, "up"];
  const store = {
    ...transactional({ name: "far", transaction: () => Promise.reject(new Error("unused")) }),
    lease: true,
    async decide({ op, count }: Call) {
      calls++;
      if (mode === "down") throw new Error("down");
      if (mode === "silent") await new Promise(() => {});
      return op === "take" ? plain.limit("hot", { count }) : plain.check("hot", { count });
    },
  };
  const limits = defineLimits({ hot: still(1000) }, { store: store as never, log: false });
  let waiting = 0;
  const one = async (): Promise<void> => {
    waiting++;
    void Promise.resolve<unknown>(limits.limit("hot")).then(() => waiting--);
    await vi.advanceTimersByTimeAsync(1);
  };
  const untilCalled = async (): Promise<void> => {
    for (const before = calls; calls === before; ) await one();
  };
  for (let i = 0; i < 50; i++) await one();
  mode = "down";
  await untilCalled();
  mode = "silent";
  vi.setSystemTime(Date.now() - HOUR / 2);
  await vi.advanceTimersByTimeAsync(100);
  await untilCalled();
  // The call was for later requests: all of these had leased tokens.
  expect(waiting).toBe(0);
});

test.each([0, -HOUR / 2])(
  "leased tokens are lost at their expiry where this process's clock was set by %i ms",
  async (set) => {
    vi.useFakeTimers({ now: 10_000_000 });
    const began = performance.now();
    const plain = defineLimits({ hot: still(1000) }, { now: () => 10_000_000 + (performance.now() - began) });
    let calls = 0;
    const store = {
      ...transactional({ name: "far", transaction: () => Promise.reject(new Error("unused")) }),
      lease: { expiry: 2000 },
      async decide({ op, count }: Call) {
        calls++;
        return op === "take" ? plain.limit("hot", { count }) : plain.check("hot", { count });
      },
    };
    const limits = defineLimits({ hot: still(1000) }, { store: store as never });
    const storeCalls = async (): Promise<number> => {
      const before = calls;
      expect(await limits.limit("hot")).toMatchObject({ ok: true });
      return calls - before;
    };
    for (let i = 0; i < 50; i++) {
      await limits.limit("hot");
      await vi.advanceTimersByTimeAsync(1);
    }
    expect(await storeCalls()).toBe(0);
    vi.setSystemTime(Date.now() + set);
    await vi.advanceTimersByTimeAsync(2000);
    expect(await storeCalls()).toBe(1);
  },
);
