import { describe, expect, test, vi } from "vitest";
import { isQueueError, type ConfigOrLimit, QueueError, throttle } from "../../src/client/index.ts";
import { defineLimits, isRateLimitError, isStoreError, SECOND } from "../../src/index.ts";
import { type Store, transactional } from "../../src/stores/index.ts";
import { fakeClock } from "../../src/testing/index.ts";
import { behind } from "../behind.ts";
import { later } from "../middleware/later.ts";
import { promisingThere } from "../realm.ts";

const spaced = { kind: "token bucket", rate: 10, period: SECOND, capacity: 1 } as const;
const START = 1_735_689_600_000;

/** A function that records when it ran, and with which argument. */
function noted() {
  const clock = fakeClock(START);
  const ran: [unknown, number][] = [];
  const fn = (name: unknown): string => {
    ran.push([name, clock.now() - START]);
    return `done ${name}`;
  };
  return { clock, ran, fn };
}

/** The same limit on a synchronous and on an asynchronous store. */
const limitOn = (store: Store | undefined, config: Parameters<typeof defineLimits>[0][string], now: () => number) => {
  const limiter = defineLimits({ api: config }, { now, ...(store === undefined ? {} : { store }) });
  return { limiter, name: "api" } as const;
};

type LimitOn = typeof limitOn;
const limitThere: LimitOn = (...args) => ({ ...limitOn(...args), limiter: promisingThere(limitOn(...args).limiter) });

describe.each<[string, () => Store | undefined, LimitOn]>([
  ["in memory", () => undefined, limitOn],
  ["over a store that answers with promises", later, limitOn],
  ["over a limiter whose promises are of another realm", later, limitThere],
])("throttle, %s", (_, make, limitOn) => {
  test("calls run in order, spaced exactly, and resolve with what the function returns", async () => {
    const { clock, ran, fn } = noted();
    const throttled = throttle(fn, limitOn(make(), spaced, clock.now), { clock });
    const answers = Promise.all(["a", "b", "c", "d"].map((name) => throttled(name)));
    await clock.pass(1000);
    expect(await answers).toEqual(["done a", "done b", "done c", "done d"]);
    expect(ran).toEqual([
      ["a", 0],
      ["b", 100],
      ["c", 200],
      ["d", 300],
    ]);
    expect([throttled.queued, throttled.running, clock.timers]).toEqual([0, 0, 0]);
  });

  test("a call that queues another returns before that one runs, for any number of them", async () => {
    const { clock } = noted();
    let [within, deepest, last] = [0, 0, -1];
    const fn = (calls: number): void => {
      deepest = Math.max(deepest, ++within);
      if (calls > 0) void again(calls - 1);
      else last = calls;
      within--;
    };
    const again = throttle(fn, limitOn(make(), { ...spaced, capacity: 1000 }, clock.now), { clock });
    void again(100);
    await clock.pass(1);
    expect([deepest, last]).toEqual([1, 0]);
  });

  test("a capacity of 0 spaces every call, the first included; a fixed window runs its tokens at its start", async () => {
    const { clock, ran, fn } = noted();
    const even = throttle(fn, limitOn(make(), { ...spaced, capacity: 0 }, clock.now), { clock });
    const window = { kind: "fixed window", rate: 2, period: SECOND, start: 0 } as const;
    const windows = throttle(fn, limitOn(make(), window, clock.now), { clock });
    for (let i = 0; i < 3; i++) void even(`even ${i}`);
    for (let i = 0; i < 5; i++) void windows(`window ${i}`);
    await clock.pass(3000);
    const at = (kind: string) => ran.filter(([name]) => String(name).startsWith(kind)).map(([, time]) => time);
    expect(at("even")).toEqual([100, 200, 300]);
    expect(at("window")).toEqual([0, 0, 1000, 1000, 2000]);
  });

  test("an abort gives the tokens back, and later calls move up", async () => {
    const { clock, ran, fn } = noted();
    const policy = limitOn(make(), spaced, clock.now);
    const throttled = throttle(fn, policy, { clock });
    const gone = new AbortController();
    void throttled("a");
    const aborted = throttled.with({ signal: gone.signal, count: 5 })("b");
    void throttled("c");
    void throttled("d");
    await clock.pass(50);
    gone.abort(new Error("no longer needed"));
    await expect(aborted).rejects.toThrow("no longer needed");
    await clock.pass(60);
    expect((await policy.limiter.getValue("api")).value).toBeCloseTo(-0.9, 9); // d is still owed, and 10 ms have refilled
    await clock.pass(1000);
    expect(ran).toEqual([
      ["a", 0],
      ["c", 100],
      ["d", 200],
    ]);
    expect((await policy.limiter.getValue("api")).value).toBe(1);
  });

  test("aborting all calls together restores the limit", async () => {
    const { clock, ran, fn } = noted();
    const policy = limitOn(make(), { ...spaced, capacity: 20 }, clock.now);
    const throttled = throttle(fn, policy, { clock });
    const gone = new AbortController();
    const calls = Array.from({ length: 100 }, (_, i) =>
      throttled
        .with({ signal: gone.signal })(i)
        .catch(() => "aborted"),
    );
    await clock.pass(0);
    expect(ran).toHaveLength(20);
    gone.abort();
    await Promise.all(calls);
    await clock.pass(0);
    expect((await policy.limiter.getValue("api")).value).toBe(0);
    expect([throttled.queued, clock.timers]).toEqual([0, 0]);
  });

  test("calls that are aborted while the tokens of another go back return theirs too", async () => {
    const { clock, fn } = noted();
    const policy = limitOn(make(), spaced, clock.now);
    const throttled = throttle(fn, policy, { clock });
    const clients = Array.from({ length: 20 }, () => new AbortController());
    const calls = clients.map(({ signal }, i) =>
      throttled
        .with({ signal })(i)
        .catch(() => "aborted"),
    );
    await clock.pass(0);
    for (const client of clients.reverse()) {
      client.abort();
      await Promise.resolve();
    }
    await Promise.all(calls);
    await throttled.idle();
    expect((await policy.limiter.getValue("api")).value).toBe(0);
  });

  test("an abort gives back only what a full limit would not have lost while no call could run", async () => {
    const { clock } = noted();
    const policy = limitOn(make(), { kind: "token bucket", rate: 1, period: SECOND, capacity: 2 }, clock.now);
    const ends: (() => void)[] = [];
    const throttled = throttle(() => new Promise<void>((done) => ends.push(done)), policy, { clock, concurrency: 1 });
    void throttled.with({ count: 2 })();
    void throttled();
    const gone = new AbortController();
    const aborted = throttled
      .with({ signal: gone.signal })()
      .catch(() => "aborted");
    // The third call's token was due half a second ago. The second call has one, which leaves room for one in the limit.
    await clock.pass(2500);
    gone.abort();
    expect(await aborted).toBe("aborted");
    await clock.pass(0);
    expect((await policy.limiter.getValue("api")).value).toBe(1);
  });

  test("a signal that is already aborted takes no token", async () => {
    const { clock, ran, fn } = noted();
    const policy = limitOn(make(), spaced, clock.now);
    const throttled = throttle(fn, policy, { clock, signal: () => AbortSignal.abort(new Error("too late")) });
    await expect(throttled("a")).rejects.toThrow("too late");
    expect([(await policy.limiter.getValue("api")).value, ran]).toEqual([1, []]);
  });

  test("a call takes its `count`, and one that never fits in `maxReserved` rejects", async () => {
    const { clock, ran, fn } = noted();
    const policy = limitOn(make(), { ...spaced, capacity: 10, maxReserved: 20 }, clock.now);
    const throttled = throttle(fn, policy, { clock, count: (name) => Number(name) });
    void throttled(10);
    void throttled(15);
    void throttled(5);
    const denied = await throttled(1).catch((error) => error);
    expect(isRateLimitError(denied)).toBe(true);
    expect(denied.retryAt).toBe(START + 100);
    await expect(throttled(31)).rejects.toThrow("exceeds capacity");
    await clock.pass(5000);
    expect(ran).toEqual([
      [10, 0],
      [15, 1500],
      [5, 2000],
    ]);
  });

  test("a full queue rejects the call, which takes no token", async () => {
    const { clock, ran, fn } = noted();
    const policy = limitOn(make(), spaced, clock.now);
    const throttled = throttle(fn, policy, { clock, maxQueued: 3 });
    void throttled("runs immediately");
    await clock.pass(0);
    const calls = ["b", "c", "d"].map((name) => throttled(name));
    const refused = await throttled("e").catch((error) => error);
    expect(isQueueError(refused)).toBe(true);
    expect(refused).toMatchObject({ reason: "full", message: "the queue is full: 3 calls wait (`maxQueued`)" });
    await clock.pass(1000);
    await Promise.all(calls);
    expect(ran.map(([, at]) => at)).toEqual([0, 100, 200, 300]);
  });

  test("a call that would run after `maxWait` rejects immediately, and returns its tokens", async () => {
    const { clock, ran, fn } = noted();
    const throttled = throttle(fn, limitOn(make(), spaced, clock.now), { clock, maxWait: 250 });
    const calls = ["a", "b", "c"].map((name) => throttled(name));
    await expect(throttled("d")).rejects.toMatchObject({ reason: "late", at: START + 300 });
    const patient = throttled.with({ maxWait: 300 })("e");
    await clock.pass(1000);
    await Promise.all([...calls, patient]);
    expect(ran.map(([name, at]) => `${name} ${at}`)).toEqual(["a 0", "b 100", "c 200", "e 300"]);
  });

  test("drain refuses new calls, clear rejects queued ones, and both idle and drain resolve once none is left", async () => {
    const { clock, ran, fn } = noted();
    const throttled = throttle(fn, limitOn(make(), spaced, clock.now), { clock });
    await throttled.idle();
    const calls = ["a", "b", "c"].map((name) => throttled(name).catch((error: Error) => error.name));
    let idle = false;
    const waited = throttled.drain().then(() => {
      idle = true;
    });
    await expect(throttled("d")).rejects.toMatchObject({ code: "TIDEGATE_QUEUE", reason: "closed" });
    await clock.pass(100);
    expect([idle, throttled.queued]).toEqual([false, 1]);
    throttled.clear();
    await waited;
    expect(await Promise.all(calls)).toEqual(["done a", "done b", "AbortError"]);
    expect([ran.length, throttled.queued, throttled.running, clock.timers]).toEqual([2, 0, 0, 0]);
  });

  test("idle and drain resolve when the tokens of cleared calls are back: the process may end then", async () => {
    const { clock, ran, fn } = noted();
    const policy = limitOn(make(), spaced, clock.now);
    const throttled = throttle(fn, policy, { clock });
    const calls = ["a", "b", "c"].map((name) => throttled(name).catch((error: Error) => error.name));
    await clock.pass(0);
    throttled.clear();
    const late = throttled("d").catch((error: Error) => error.name);
    throttled.clear(); // while d's token is being reserved
    await throttled.idle();
    expect((await policy.limiter.getValue("api")).value).toBe(0); // what a took
    const last = throttled("e").catch((error: Error) => error.name);
    throttled.clear();
    await throttled.drain();
    expect((await policy.limiter.getValue("api")).value).toBe(0);
    expect(await Promise.all([...calls, late, last])).toEqual(["done a", ...Array(4).fill("AbortError")]);
    expect(ran).toEqual([["a", 0]]);
  });

  test("at most `concurrency` calls run, and the tokens of the others stay reserved", async () => {
    const clock = fakeClock(START);
    const ends: (() => void)[] = [];
    let most = 0;
    const work = (): Promise<void> => {
      most = Math.max(most, throttled.running);
      return new Promise((done) => ends.push(done));
    };
    const throttled = throttle(work, limitOn(make(), { ...spaced, capacity: 10 }, clock.now), {
      clock,
      concurrency: 2,
    });
    for (let i = 0; i < 5; i++) void throttled();
    await clock.pass(1000);
    expect([ends.length, throttled.running, throttled.queued]).toEqual([2, 2, 3]);
    while (ends.length > 0) {
      ends.shift()?.();
      await clock.pass(1000);
    }
    await throttled.idle();
    expect(most).toBe(2);
  });
});

describe("a throttled function", () => {
  test("keeps `this`, name and length, and rejects with the function's errors", async () => {
    const { clock } = noted();
    class Service {
      readonly greeting = "hello";
      greet(name: string): string {
        if (name === "") throw new Error("who?");
        return `${this.greeting} ${name}`;
      }
    }
    const service = Object.assign(new Service(), { greet: throttle(Service.prototype.greet, spaced, { clock }) });
    const first = service.greet("a");
    const second = service.greet("");
    const third = service.greet.with({ priority: 9 }).call(service, "c");
    await Promise.all([clock.pass(300), expect(second).rejects.toThrow("who?")]);
    expect([await first, await third]).toEqual(["hello a", "hello c"]);
    expect([service.greet.name, service.greet.length]).toEqual(["greet", 1]);
  });

  test("has one queue per key", async () => {
    const { clock, ran, fn } = noted();
    const throttled = throttle(fn, { ...spaced, rate: 1 }, { clock, key: (name) => String(name)[0] ?? "" });
    for (const name of ["a1", "a2", "b1", "b2"]) void throttled(name);
    await clock.pass(0);
    expect(ran.map(([name]) => name)).toEqual(["a1", "b1"]);
    await clock.pass(1000);
    expect(ran.map(([name]) => name)).toEqual(["a1", "b1", "a2", "b2"]);
    await throttled.idle();
  });

  test("rejects a call whose key is absent: it would share one limit with all such calls", async () => {
    const { fn } = noted();
    const users: { id?: string }[] = [{}];
    const throttled = throttle(fn, spaced, { key: () => users[0]?.id as string });
    await expect(throttled("a")).rejects.toThrow("`key` must be a string; got undefined");
    const limiter = defineLimits({ a: spaced });
    const limit = { limiter, name: "a", key: users[0]?.id as string } as const;
    expect(() => throttle(fn, limit)).toThrow(/^`key` must be a string .*, and not empty; .*; got undefined$/);
  });

  test("runs in the async context of its caller, however late", async () => {
    const { AsyncLocalStorage } = await import("node:async_hooks");
    const context = new AsyncLocalStorage<string>();
    const clock = fakeClock(START);
    const throttled = throttle(() => context.getStore(), spaced, { clock });
    const calls = ["a", "b", "c"].map((name) => context.run(name, () => throttled()));
    await clock.pass(1000);
    expect(await Promise.all(calls)).toEqual(["a", "b", "c"]);
  });

  test("a store that fails while an aborted call's tokens go back keeps them, and rejects nothing else", async () => {
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    const { clock, ran, fn } = noted();
    let fails = false;
    const store = behind(() => (fails ? Promise.reject(new Error("connection refused")) : Promise.resolve()), "broken");
    const throttled = throttle(fn, limitOn(store, spaced, clock.now), { clock });
    const gone = new AbortController();
    const calls = [throttled("a"), throttled.with({ signal: gone.signal })("b"), throttled("c")];
    await clock.pass(0);
    fails = true;
    gone.abort(new Error("no longer needed"));
    await expect(calls[1]).rejects.toThrow("no longer needed");
    await clock.pass(200);
    process.off("unhandledRejection", unhandled);
    expect(ran.map(([name]) => name)).toEqual(["a", "c"]);
    expect(unhandled).not.toHaveBeenCalled();
  });

  test("a failing store rejects the call with its error", async () => {
    const store = transactional({ name: "broken", transaction: () => Promise.reject(new Error("connection refused")) });
    const { clock, ran, fn } = noted();
    const throttled = throttle(fn, limitOn(store, spaced, clock.now), { clock });
    const error = await throttled("a").catch((error) => error);
    expect([isStoreError(error), ran.length, throttled.queued]).toEqual([true, 0, 0]);
    const open = throttle(fn, limitOn(store, { ...spaced, onStoreError: "allow" }, clock.now), { clock });
    await open("b");
    expect(ran).toEqual([["b", 0]]);
  });

  test.each([
    ["`fn` must be a function", () => throttle(1 as never, spaced)],
    ["`limit` must be a config", () => throttle(() => 1, undefined as never)],
    ["`rate` must be", () => throttle(() => 1, { ...spaced, rate: 0 })],
    ["`limiter` must be", () => throttle(() => 1, { limiter: {}, name: "a" } as never)],
    ["`maxQueued` must be an integer from 1", () => throttle(() => 1, spaced, { maxQueued: 0 })],
    ["`concurrency` must be an integer from 1", () => throttle(() => 1, spaced, { concurrency: 0.5 })],
    ["`count` must be a finite number of tokens", () => throttle(() => 1, spaced, { count: -1 })],
    ["`priority` must be an integer from 0 to 9", () => throttle(() => 1, spaced, { priority: 10 })],
    ["`maxWait` must be", () => throttle(() => 1, spaced, { maxWait: Number.NaN })],
    ["`clock` must be an object", () => throttle(() => 1, spaced, { clock: {} as never })],
    ["`speed` must be absent", () => throttle(() => 1, spaced, { speed: 1 } as never)],
    ["`signal` must be", () => throttle(() => 1, spaced).with({ signal: {} as never })],
  ])("throws immediately for an invalid option: %s", (message, make) => expect(make).toThrow(message));

  test("an invalid argument rejects its call before anything is taken", async () => {
    const { clock, ran, fn } = noted();
    const throttled = throttle(fn, spaced, { clock, count: (name) => name as number });
    for (const count of [Number.NaN, -1, "1"]) {
      await expect(throttled(count)).rejects.toThrow("`count` must be a finite number of tokens");
    }
    await throttled(1);
    expect(ran).toEqual([[1, 0]]);
  });
});

const _types = (): void => {
  const throttled = throttle((question: string, times: number) => question.repeat(times), spaced);
  const answer: Promise<string> = throttled("a", 2);
  // @ts-expect-error: the throttled function has the function's parameters
  void throttled(1);
  const policy: ConfigOrLimit = spaced;
  void [answer, policy, QueueError];
};
void _types;
