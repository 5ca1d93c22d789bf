import { getEventListeners } from "node:events";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { evaluate } from "../../src/index.ts";
import { RemoteLimits, type ServerState } from "../../src/react/remote.ts";
import { passTime, settled, setWall, useClocks } from "./clocks.ts";
import { config, observing, page, server, show } from "./shown.ts";

beforeEach(useClocks);

describe("a clock that was set while no timer was due", () => {
  test.each([
    ["before a request", 0],
    ["during a request", 20],
  ])("is measured again, %s, also by a slower round trip", async (_, pause) => {
    const far = server();
    const from = new RemoteLimits(far.load);
    const { last, stop } = show(from, ["ok"]);
    await settled();
    const ahead = 3_600_000;
    far.delay = 30;
    const set = () => {
      setWall(Date.now() + ahead);
      far.ahead = -ahead;
      far.state = { value: -10, ts: Date.now() - ahead };
    };
    if (pause === 0) set();
    const refreshed = from.refresh("message");
    passTime(pause);
    if (pause > 0) set();
    for (let i = 0; i < 40; i++) {
      passTime(10);
      await settled();
    }
    await refreshed;
    expect(from.now()).toBeGreaterThanOrEqual(Date.now() - ahead - 60);
    expect(from.now()).toBeLessThanOrEqual(Date.now() - ahead + 60);
    expect(last()).toEqual([false]);
    stop();
  });
});

describe("what a component shows", () => {
  test("is undefined, then the server's state, then its projection: the server is called once", async () => {
    const far = server({ value: 0, ahead: 86_400_000 });
    const { shown, stop } = show(new RemoteLimits(far.load), ["ok", "retryAfter"], { count: 3 });
    await settled();
    for (let i = 0; i < 100; i++) passTime(100);
    expect(shown).toEqual([
      [undefined, undefined],
      [false, 3000],
      [false, 2000],
      [false, 1000],
      [true, undefined],
    ]);
    expect(far.requests).toBe(1);
    stop();
  });

  test("changes at the ms of `retryAt`, on this machine's clock", async () => {
    const far = server({ value: 0.25, ahead: -5000 });
    const { last, stop } = show(new RemoteLimits(far.load), ["ok", "retryAt"]);
    await settled();
    const retryAt = Date.now() + 750;
    expect(last()).toEqual([false, retryAt]);
    passTime(749);
    expect(last()).toEqual([false, retryAt]);
    passTime(1);
    expect(last()).toEqual([true, undefined]);
    const { decision } = evaluate(far.state, config, { now: Date.now() - 5000 });
    expect(decision.ok).toBe(true);
    stop();
  });

  test.each([
    ["ok", 2],
    ["remaining", 6],
    ["value", 51],
    ["error", 1],
  ] as const)("%s alone: it renders %i times while an empty bucket of five fills", async (field, times) => {
    const far = server({ value: 0 });
    const from = new RemoteLimits(far.load);
    await from.refresh("message");
    const { shown, stop } = show(from, [field], { tick: 100 });
    await settled();
    for (let i = 0; i < 600; i++) passTime(10);
    expect(shown.length).toBe(times);
    expect(vi.getTimerCount()).toBe(0);
    stop();
  });

  test("a limit without subscribers has no timer", async () => {
    const { stop } = show(new RemoteLimits(server({ value: 0 }).load), ["value"]);
    await settled();
    expect(vi.getTimerCount()).toBe(1);
    stop();
    expect(vi.getTimerCount()).toBe(0);
  });

  test("counts down a field that a child reads later, when it renders alone", async () => {
    const far = server({ value: 0 });
    const from = new RemoteLimits(far.load);
    await from.refresh("message");
    const observer = observing(from, 3);
    const read = () => observer.read(observer.view(), "retryAfter");
    const shown: unknown[] = [];
    observer.read(observer.view(), "ok");
    const stop = observer.subscribe(() => void shown.push(read()));
    await settled();
    passTime(1500);
    // The child's render, which the component that has the hook takes no part in.
    shown.push(read());
    await settled();
    for (let i = 0; i < 20; i++) passTime(100);
    expect(shown).toEqual([2000, 1000, undefined]);
    stop();
  });

  test("has the value of that moment where an event handler reads a field that no render has read", async () => {
    const observer = observing(new RemoteLimits(server({ value: 0 }).load), 1);
    let renders = 0;
    const stop = observer.subscribe(() => void renders++);
    await settled();
    // What the last render got, before the server's response.
    const view = observer.view();
    expect([observer.read(view, "ok"), observer.read(view, "ok")]).toEqual([false, false]);
    await settled();
    passTime(999);
    expect([observer.read(observer.view(), "retryAfter"), renders]).toEqual([1000, 0]);
    passTime(1);
    expect([observer.read(observer.view(), "ok"), renders]).toEqual([true, 1]);
    stop();
  });

  test("is never granted if no wait helps", async () => {
    const { shown, stop } = show(new RemoteLimits(server().load), ["ok", "retryAt", "retryAfter"], { count: 6 });
    await settled();
    expect(shown.at(-1)).toEqual([false, undefined, undefined]);
    expect(vi.getTimerCount()).toBe(0);
    stop();
  });

  test("starts with what the rendering server returned, as of then", async () => {
    const far = server({ value: 0 });
    const initial = await far.load();
    passTime(400);
    const { shown, stop } = show(new RemoteLimits(far.load), ["ok", "retryAfter"], { tick: 100, initial });
    await settled();
    // Until the clocks are compared, its age is taken as 0: never granted too early.
    expect(shown.slice(0, 2)).toEqual([
      [false, 1000],
      [false, 600],
    ]);
    stop();
  });

  test("is what a server rendered later, such as after an action", async () => {
    const from = new RemoteLimits(server({ value: 5 }).load);
    const observer = observing(from, 1);
    observer.read(observer.view(), "ok");
    const stop = observer.subscribe(() => {});
    await settled();
    passTime(10);
    const now = Date.now();
    observer.rendered({ value: -2, ts: now, config, now });
    expect(observer.view().ok).toBe(false);
    stop();
  });

  test("is watched in React Native, whose window has no events", async () => {
    vi.stubGlobal("window", {});
    const { last, stop } = show(new RemoteLimits(server().load), ["ok"]);
    await settled();
    expect(last()).toEqual([true]);
    stop();
  });

  test("is not set back to the page's first state by a component that is mounted minutes later", async () => {
    const far = server({ value: 5 });
    const initial = await far.load();
    const from = new RemoteLimits(far.load);
    const first = show(from, ["ok"], { initial });
    await settled();
    passTime(120_000);
    from.learn("message", { value: -2, ts: Date.now(), now: Date.now() });
    const later = show(from, ["ok"], { initial });
    await settled();
    expect([first.last(), later.last()]).toEqual([[false], [false]]);
    first.stop();
    later.stop();
  });
});

describe("the state", () => {
  test("comes from one request for all subscribers", async () => {
    const far = server();
    const from = new RemoteLimits(far.load);
    const all = [show(from, ["ok"]), show(from, ["remaining"]), show(from, ["value"])];
    await settled();
    expect(far.requests).toBe(1);
    expect(all.map(({ last }) => last())).toEqual([[true], [5], [5]]);
    for (const { stop } of all) stop();
  });

  test("a slow first request is followed by two more, a later one by none; the fastest sets the clock", async () => {
    const far = server({ ahead: 10_000 });
    far.delay = 200;
    const from = new RemoteLimits(far.load);
    const { stop } = show(from, ["ok"]);
    for (let i = 0; i < 50; i++) await vi.advanceTimersByTimeAsync(100);
    expect(far.requests).toBe(3);
    expect(from.now() - Date.now()).toBe(10_000);
    void from.refresh("message");
    for (let i = 0; i < 50; i++) await vi.advanceTimersByTimeAsync(100);
    expect(far.requests).toBe(4);
    stop();
  });

  test("is updated by any other response, and older ones are ignored", async () => {
    const far = server();
    const from = new RemoteLimits(far.load);
    const { last, stop } = show(from, ["remaining", "ok"]);
    await settled();
    const now = Date.now();
    from.learn("message", { value: 0.5, ts: now + 1, now: now + 1 });
    expect(last()).toEqual([0, false]);
    from.learn("message", { value: 4, ts: now, now });
    expect(last()).toEqual([0, false]);
    // A denial for its size read no state.
    from.learn("message", { value: 0, ts: now + 2, now: now + 2, reason: "exceeds capacity" });
    expect(from.state("message")?.value).toBe(0.5);
    // Nor did a decision in place of a store that failed.
    from.learn("message", { value: 0, ts: now + 3, now: now + 3, degraded: true });
    expect(from.state("message")?.value).toBe(0.5);
    stop();
  });

  test("a refresh sends a request, even while another one is in flight", async () => {
    const far = server();
    const from = new RemoteLimits(far.load);
    far.delay = 10;
    const { last, stop } = show(from, ["remaining"]);
    far.state = { value: 1, ts: Date.now() };
    const refreshed = from.refresh("message");
    await vi.advanceTimersByTimeAsync(20);
    far.state = { value: 0, ts: Date.now() };
    await vi.advanceTimersByTimeAsync(20);
    await refreshed;
    expect([far.requests, last()]).toEqual([2, [0]]);
    stop();
  });

  test("a failed request sets `error` and keeps the state; the next response clears it", async () => {
    const far = server();
    const from = new RemoteLimits(far.load);
    const { last, stop } = show(from, ["error", "remaining"]);
    await settled();
    far.fails = new Error("offline");
    await from.refresh("message");
    expect(last()).toEqual([far.fails, 5]);
    far.fails = undefined;
    await from.refresh("message");
    expect(last()).toEqual([undefined, 5]);
    stop();
  });

  test.each([
    [null, "`state` must be"],
    [{ value: Number.NaN, ts: 0, config, now: 0 }, "`value` must be"],
    [{ value: 1, ts: 0, config: { kind: "bucket" }, now: 0 }, "`kind` must be"],
    [{ value: 1, ts: 0, config }, "`now` must be"],
  ])("an invalid response, %j, is an error that names the field", async (answer, message) => {
    const from = new RemoteLimits(() => answer as ServerState);
    await from.refresh("message");
    expect((from.error("message") as Error).message).toContain(message);
    expect(from.state("message")).toBeUndefined();
  });

  test("a `load` that throws synchronously sets `error` too, and is called again later", async () => {
    let calls = 0;
    const from = new RemoteLimits(() => {
      calls++;
      throw new Error("not yet");
    });
    await from.refresh("message");
    await from.refresh("message");
    expect([calls, (from.error("message") as Error).message]).toEqual([2, "not yet"]);
  });
});

describe("after the page was in the background", () => {
  test("the state is requested once when the page is visible again, and never while hidden or without subscribers", async () => {
    const { turn, window } = page();
    const far = server();
    const { stop } = show(new RemoteLimits(far.load), ["ok"]);
    await settled();
    turn("hidden");
    await settled();
    expect(far.requests).toBe(1);
    turn("visible");
    await settled();
    expect(far.requests).toBe(2);
    window.dispatchEvent(new Event("online"));
    await settled();
    expect(far.requests).toBe(3);
    stop();
    expect([getEventListeners(document, "visibilitychange"), getEventListeners(window, "online")]).toEqual([[], []]);
    turn("visible");
    await settled();
    expect(far.requests).toBe(3);
  });

  test("a watcher that is removed twice leaves the others watching", async () => {
    const { turn } = page();
    const far = server();
    const from = new RemoteLimits(far.load);
    const [first, second] = [vi.fn(), vi.fn()];
    const stop = from.watch("message", first);
    from.watch("message", second);
    await settled();
    stop();
    stop();
    turn("visible");
    await settled();
    expect([far.requests, first.mock.calls.length]).toEqual([2, 1]);
  });

  test("a watcher that throws stops neither the other watchers nor later requests, and its error is reported", async () => {
    const far = server();
    const from = new RemoteLimits(far.load);
    const error = new Error("a component's mistake");
    const reports: (() => void)[] = [];
    vi.stubGlobal("queueMicrotask", (report: () => void) => reports.push(report));
    const second = vi.fn();
    from.watch("message", () => {
      throw error;
    });
    from.watch("message", second);
    await settled();
    expect([far.requests, second.mock.calls.length]).toEqual([1, 1]);
    await from.refresh("message");
    expect([far.requests, second.mock.calls.length]).toEqual([2, 2]);
    expect(reports).toHaveLength(2);
    for (const report of reports) expect(report).toThrow(error);
    vi.unstubAllGlobals();
  });

  test("the bucket refills during a sleep, and the clock is measured again afterwards", async () => {
    const { turn } = page();
    const far = server({ value: 0 });
    const from = new RemoteLimits(far.load);
    const { last, stop } = show(from, ["remaining"], { count: 5 });
    await settled();
    setWall(Date.now() + 4000); // asleep: timers do not run
    far.delay = 500; // and the network is slow at first
    turn("visible");
    expect(last()).toEqual([4]);
    for (let i = 0; i < 5; i++) await vi.advanceTimersByTimeAsync(1000);
    expect([last(), far.requests]).toEqual([[5], 4]);
    stop();
  });

  test("a timer that finds the time set measures the clock, without any event", async () => {
    const far = server({ value: -100 });
    const from = new RemoteLimits(far.load);
    const { last, stop } = show(from, ["retryAfter"]);
    await settled();
    expect(last()).toEqual([101_000]);
    setWall(Date.now() + 3_600_000); // forward; the server's clock is unchanged
    far.ahead = -3_600_000;
    passTime(1000);
    await settled();
    expect([last(), far.requests]).toEqual([[100_000], 2]);
    stop();
  });
});
