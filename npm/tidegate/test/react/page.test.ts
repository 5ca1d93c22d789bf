/** What a page does for the limits that it shows, and what it leaves. */
import { beforeEach, expect, test, vi } from "vitest";
import { DAY } from "../../src/index.ts";
import { RemoteLimits } from "../../src/react/remote.ts";
import { passTime, settled, setWall, useClocks } from "./clocks.ts";
import { config, observing, page, server, show } from "./shown.ts";

beforeEach(useClocks);

test("a page that becomes visible requests the limits that it shows, and no others", async () => {
  const { turn } = page();
  const requested: string[] = [];
  const from = new RemoteLimits((name) => {
    requested.push(name);
    return server().load();
  });
  const stop = from.watch("shown", vi.fn());
  from.watch("left", vi.fn())();
  await settled();
  turn("visible");
  await settled();
  expect(requested).toEqual(["shown", "left", "shown"]);
  stop();
});

test("a watcher that leaves and comes back while it is called is called once", async () => {
  const from = new RemoteLimits(server().load);
  let calls = 0;
  let stop = (): void => {};
  const changed = (): void => {
    if (++calls > 9) return;
    stop();
    stop = from.watch("message", changed);
  };
  stop = from.watch("message", changed);
  await settled();
  expect(calls).toBe(1);
  stop();
});

test("a watcher that another one removes is not called at its instant", async () => {
  const from = new RemoteLimits(server().load);
  const [second, stopped] = [vi.fn(), vi.fn(() => stopSecond())];
  const stop = from.watch("message", stopped);
  const stopSecond = from.watch("message", second);
  await settled();
  vi.clearAllMocks();
  from.wake("message", stopped, Date.now() + 10);
  from.wake("message", second, Date.now() + 20);
  passTime(30);
  expect([stopped.mock.calls.length, second.mock.calls.length, vi.getTimerCount()]).toEqual([1, 0, 0]);
  stop();
});

test("one request measures the clock after a sleep", async () => {
  const { turn } = page();
  const far = server();
  const { stop } = show(new RemoteLimits(far.load), ["ok"]);
  await settled();
  setWall(Date.now() + 4000);
  turn("visible");
  await settled();
  expect(far.requests).toBe(2);
  stop();
});

test("a state in a response sets the clock", () => {
  const from = new RemoteLimits(server().load);
  const now = Date.now() + 3_600_000;
  from.learn("message", { value: 0, ts: now, config, now });
  expect([from.now(), from.here(now)]).toEqual([now, Date.now()]);
});

test("the state that a server rendered is not taken for newer than one of the same instant", async () => {
  const from = new RemoteLimits(server().load);
  const rendered = { value: 5, ts: Date.now(), config, now: Date.now() };
  from.learn("message", { ...rendered, value: 0 });
  const observer = observing(from, 1, 1000, rendered);
  observer.rendered(rendered);
  expect(from.state("message")?.value).toBe(0);
});

test("`retryAt` alone is undefined from that time on", async () => {
  const { last, stop } = show(new RemoteLimits(server({ value: 0 }).load), ["retryAt"]);
  await settled();
  expect(last()).toEqual([Date.now() + 1000]);
  passTime(1000);
  expect(last()).toEqual([undefined]);
  stop();
});

test("a component has one timer, however often its limit changed", async () => {
  const from = new RemoteLimits(server({ value: 0 }).load);
  const { stop } = show(from, ["value"]);
  await settled();
  for (let i = 0; i < 3; i++) {
    passTime(1);
    from.learn("message", { value: 0, ts: Date.now(), now: Date.now() });
  }
  expect(vi.getTimerCount()).toBe(1);
  stop();
});

test("components have one timer together, so that those of one instant render together", async () => {
  const from = new RemoteLimits(server({ value: 0 }).load);
  const shown = [1000, 1000, 400].map((tick) => show(from, ["retryAfter"], { tick, count: 2 }));
  await settled();
  expect(vi.getTimerCount()).toBe(1);
  const last = () => shown.map((component) => component.last()?.[0]);
  for (const next of [
    [2000, 2000, 1600],
    [2000, 2000, 1200],
    [1000, 1000, 1200],
    [1000, 1000, 800],
  ]) {
    vi.advanceTimersToNextTimer();
    expect([last(), vi.getTimerCount()]).toEqual([next, 1]);
  }
  for (const { stop } of shown) stop();
  expect(vi.getTimerCount()).toBe(0);
});

test("no timer is longer than a sixtieth of the wait: it stands still while the machine sleeps", async () => {
  const from = new RemoteLimits(server().load);
  const timers = vi.spyOn(globalThis, "setTimeout");
  const { last, stop } = show(from, ["ok"]);
  await settled();
  from.learn("message", { value: 0, ts: Date.now(), config: { ...config, period: 30 * DAY }, now: Date.now() });
  const delay = timers.mock.lastCall?.[1] ?? 0;
  expect(delay).toBeLessThanOrEqual(DAY / 2);
  expect(last()).toEqual([false]);
  setWall(Date.now() + 31 * DAY);
  passTime(delay);
  expect(last()).toEqual([true]);
  stop();
});
