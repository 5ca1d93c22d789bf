/** A queue on a store that fails: what it returns stays taken, and its other calls keep their times. */
import { describe, expect, test, vi } from "vitest";
import { type LimiterLike, semaphore, throttle } from "../../src/client/index.ts";
import { defineLimits, memory, type OnStoreError, SECOND } from "../../src/index.ts";
import type { Store } from "../../src/stores/contract.ts";
import { fakeClock } from "../../src/testing/index.ts";

const spaced = { kind: "token bucket", rate: 10, period: SECOND, capacity: 1 } as const;

/** Notes each call that runs, and how many ms after the start. */
function recorder() {
  const clock = fakeClock();
  const start = clock.now();
  const ran: [string, number][] = [];
  return { clock, ran, run: (name: string): void => void ran.push([name, clock.now() - start]) };
}

type Operation = "take" | "give" | "getValue";

/** A store in memory of which some operations fail. */
function breakable(sync: boolean) {
  const held = memory();
  const broken = new Set<Operation>();
  function unlessBroken<R>(operation: string, run: () => R): R | Promise<R> {
    const fails = broken.has(operation as Operation);
    if (!sync) return fails ? Promise.reject(new Error("the disk is gone")) : Promise.resolve(run());
    if (fails) throw new Error("the disk is gone");
    return run();
  }
  const store = {
    name: "local",
    sync,
    decide: (call, now) => unlessBroken(call.op, () => held.decide(call, now)),
    decideAll: (calls, now) => held.decideAll(calls, now),
    reset: (limit, key) => held.reset(limit, key),
    getValue: (limit, key, now) => unlessBroken("getValue", () => held.getValue(limit, key, now)),
  } as Store;
  return { store, broken };
}

describe.each([true, false])("a queue on a store that fails, synchronous: %j", (sync) => {
  function queue(onStoreError: OnStoreError = "deny", concurrency = semaphore(100)) {
    const { clock, ran, run } = recorder();
    const { store, broken } = breakable(sync);
    const limiter = defineLimits({ api: spaced }, { store, now: clock.now, log: false, onStoreError });
    const throttled = throttle(run, { limiter, name: "api" }, { clock, concurrency });
    return { clock, broken, limiter, ran, throttled };
  }

  test.each<Operation>(["getValue", "give"])("%s fails as an aborted call's token goes back", async (operation) => {
    const { clock, broken, ran, throttled } = queue();
    const uncaught = vi.fn();
    process.on("uncaughtException", uncaught);
    const gone = new AbortController();
    const names = ["a", "b", "c", "d", "e"];
    const calls = names.map((name) => throttled.with(name === "c" ? { signal: gone.signal } : {})(name));
    await clock.pass(10);
    broken.add(operation);
    gone.abort(new Error("no longer needed"));
    await expect(calls[2]).rejects.toThrow("no longer needed");
    await clock.pass(SECOND);
    process.off("uncaughtException", uncaught);
    expect(uncaught).not.toHaveBeenCalled();
    expect(ran).toEqual([
      ["a", 0],
      ["b", 100],
      ["d", 200],
      ["e", 300],
    ]);
  });

  test("the store fails as calls that are late, or cleared, return theirs", async () => {
    const { clock, broken, throttled } = queue();
    const calls = ["a", "b", "c", "d"].map((name) => throttled.with({ maxWait: name === "d" ? 350 : Infinity })(name));
    const ends = Promise.allSettled(calls);
    await clock.pass(0);
    broken.add("getValue");
    clock.set(clock.now() + 400);
    await clock.pass(0);
    expect(() => throttled.clear()).not.toThrow();
    await clock.pass(SECOND);
    await ends;
    expect([throttled.queued, throttled.running, clock.timers]).toEqual([0, 0, 0]);
    await throttled.idle();
  });

  test("tokens that the store did not take are not returned to it", async () => {
    const one = semaphore(1);
    const { clock, broken, limiter, throttled } = queue("allow", one);
    await one.acquire();
    await limiter.limit("api");
    broken.add("take");
    const gone = new AbortController();
    const call = throttled.with({ signal: gone.signal })("a");
    await clock.pass(0);
    broken.clear();
    gone.abort(new Error("no longer needed"));
    await expect(call).rejects.toThrow("no longer needed");
    await clock.pass(0);
    expect((await limiter.getValue("api")).value).toBe(0);
  });

  test("where all calls are allowed, they are spaced by the limit, also in a queue that has never had the store", async () => {
    const { clock, broken, ran, throttled } = queue("allow");
    broken.add("take");
    for (const name of ["a", "b", "c", "d"]) void throttled(name);
    await clock.pass(SECOND);
    expect(ran).toEqual([
      ["a", 0],
      ["b", 0],
      ["c", 100],
      ["d", 200],
    ]);
  });

  test("calls that a local limit granted leave the limit's own rate to later ones", async () => {
    const { clock, broken, ran, throttled } = queue({ local: 0.1 });
    broken.add("take");
    void throttled("local");
    await clock.pass(SECOND);
    broken.clear();
    for (const name of ["a", "b", "c"]) void throttled(name);
    await clock.pass(SECOND);
    expect(ran).toEqual([
      ["local", 0],
      ["a", 1000],
      ["b", 1100],
      ["c", 1200],
    ]);
  });
});

describe.each([30 * SECOND, -30 * SECOND])("a store that fails, whose clock is %i ms ahead", (ahead) => {
  function failing() {
    const { clock, ran, run } = recorder();
    const remote = defineLimits({ api: spaced }, { now: () => clock.now() + ahead });
    const local = defineLimits({ api: spaced }, { now: clock.now });
    const state = { fails: false };
    const limiter: LimiterLike<"api"> = {
      limit: (...call) => (state.fails ? { ...local.limit(...call), degraded: true } : remote.limit(...call)),
      give: (...call) => remote.give(...call),
      getValue: (...of) => remote.getValue(...of),
    };
    return { clock, state, ran, throttled: throttle(run, { limiter, name: "api" }, { clock }) };
  }

  test("calls keep their times where it fails later", async () => {
    const { clock, state, ran, throttled } = failing();
    for (const name of ["a", "b", "c", "d"]) void throttled(name);
    await clock.pass(10);
    state.fails = true;
    void throttled("local");
    await clock.pass(SECOND);
    state.fails = false;
    void throttled("e");
    await clock.pass(SECOND);
    expect(ran).toEqual([
      ["a", 0],
      ["b", 100],
      ["c", 200],
      ["d", 300],
      ["local", 300],
      ["e", 1010],
    ]);
  });

  test("calls that came before its first decision keep their times after it", async () => {
    const { clock, state, ran, throttled } = failing();
    state.fails = true;
    for (const name of ["a", "b", "c", "d"]) void throttled(name);
    await clock.pass(10);
    state.fails = false;
    void throttled("e");
    await clock.pass(SECOND);
    expect(ran).toEqual([
      ["a", 0],
      ["b", 100],
      ["c", 200],
      ["d", 300],
      ["e", 300],
    ]);
  });
});

describe("a reservation fails after its call was aborted", () => {
  function held() {
    const clock = fakeClock();
    const api = { kind: "token bucket", rate: 10, period: SECOND, capacity: 3 } as const;
    const limiter = defineLimits({ api }, { now: clock.now });
    /** Ends the takes in flight, in order: each is decided, or fails. */
    const takes: ((fails: boolean) => void)[] = [];
    const remote: LimiterLike<"api"> = {
      limit: (...call) =>
        new Promise((resolve, reject) => {
          takes.push((fails) => (fails ? reject(new Error("the store is gone")) : resolve(limiter.limit(...call))));
        }),
      give: async (...call) => limiter.give(...call),
      getValue: async (...of) => limiter.getValue(...of),
    };
    const throttled = throttle(
      (count: number) => count,
      { limiter: remote, name: "api" },
      { clock, count: (count) => count },
    );
    const gone = new AbortController();
    const aborted = expect(throttled.with({ signal: gone.signal })(2)).rejects.toThrow("no longer needed");
    const abort = async () => {
      gone.abort(new Error("no longer needed"));
      await aborted;
    };
    return { clock, takes, throttled, abort };
  }

  test("the calls that would have used its tokens reject, too", async () => {
    const { clock, takes, throttled, abort } = held();
    await abort();
    const calls = Promise.allSettled([throttled(1), throttled(1)]);
    expect(takes).toHaveLength(1);
    takes[0]?.(true);
    await clock.pass(SECOND);
    expect(throttled.queued).toBe(0);
    expect((await calls).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  });

  test("calls of 0 tokens, which need none of its tokens, run", async () => {
    const { clock, takes, throttled, abort } = held();
    await abort();
    const other = expect(throttled(1)).rejects.toThrow("the store is gone");
    const free = [0, 5, 5, 9].map((priority) => throttled.with({ priority })(0));
    takes[0]?.(true);
    await clock.pass(SECOND);
    await other;
    expect(await Promise.all(free)).toEqual([0, 0, 0, 0]);
  });

  test("a call that has its own reservation runs", async () => {
    const { clock, takes, throttled, abort } = held();
    const other = throttled(1);
    await abort();
    takes[0]?.(true);
    await clock.pass(0);
    takes[1]?.(false);
    expect(await other).toBe(1);
  });
});
