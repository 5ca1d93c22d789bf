/** The longest wait of a call, whatever it waits for: `maxWait` of throttle and concurrent, `deadline` of createFetch. */
import { describe, expect, test } from "vitest";
import { concurrent, createFetch, type QueueError, throttle } from "../../src/client/index.ts";
import { defineLimits, HOUR, SECOND } from "../../src/index.ts";
import { fakeClock } from "../../src/testing/index.ts";
import { later } from "../middleware/later.ts";

const START = 1_735_689_600_000;
const spaced = { kind: "token bucket", rate: 10, period: SECOND, capacity: 1 } as const;
const URL_ = "https://api.example.com/things";

/** What a call ended with, and when: `"b 300"`, `"late 250"`. */
const noted = (clock: { now(): number }, call: Promise<unknown>): Promise<string> =>
  call.then(
    (value) => `${value} ${clock.now() - START}`,
    (error: { reason?: string }) => `${error.reason ?? error} ${clock.now() - START}`,
  );

describe.each([
  ["in memory", undefined],
  ["over a store that answers with promises", later],
])("`maxWait`, %s", (_, store) => {
  // The real time of a busy machine is none of the tests.
  const limitOn = (now: () => number) => {
    const limiter = defineLimits({ api: spaced }, { now, ...(store && { store: store(), timeout: HOUR }) });
    return { limiter, name: "api" } as const;
  };

  test("a call that has no free place by then rejects", async () => {
    const clock = fakeClock(START);
    const limit = limitOn(clock.now);
    const work = async (ms: number) => {
      await new Promise<void>((done) => clock.setTimeout(done, ms));
      return "done";
    };
    const throttled = throttle(work, limit, { clock, concurrency: 1, maxWait: 250 });
    const calls = [throttled(240), throttled(1000), throttled(5), throttled.with({ maxWait: 2000 })(5)];
    const ends = calls.map((call) => noted(clock, call));
    await clock.pass(5 * SECOND);
    expect(await Promise.all(ends)).toEqual(["done 240", "done 1240", "late 250", "done 1245"]);
    await throttled.idle();
    expect([(await limit.limiter.getValue("api")).value, clock.timers]).toEqual([1, 0]);
  });

  test("a call that overtakes others is late by when it would run, not by when the last of them does", async () => {
    const clock = fakeClock(START);
    const throttled = throttle((name: string) => name, limitOn(clock.now), { clock });
    const calls = Array.from({ length: 10 }, (_, i) => throttled(String(i)));
    await clock.pass(0);
    const urgent = throttled.with({ priority: 9, maxWait: 150 });
    const ends = ["a", "b"].map((name) => noted(clock, urgent(name)));
    await clock.pass(2 * SECOND);
    // Both overtake nine calls; the second would run at 200.
    expect(await Promise.all(ends)).toEqual(["a 100", "late 0"]);
    await Promise.all(calls);
  });

  test("of many urgent calls those that are late reject immediately, though they overtake one, and their tokens return", async () => {
    const clock = fakeClock(START);
    const limit = limitOn(clock.now);
    const throttled = throttle((name: unknown) => name, limit, { clock, priority: 0 });
    const patient = ["a", "b"].map((name) => noted(clock, throttled(name)));
    await clock.pass(0);
    const urgent = throttled.with({ priority: 9, maxWait: 250 });
    const ends = Array.from({ length: 500 }, (_, i) => noted(clock, urgent(i)));
    // Behind two of these.
    ends.push(noted(clock, throttled.with({ priority: 5, maxWait: 250 })("c")));
    await clock.pass(1);
    expect((await limit.limiter.getValue("api")).value).toBeGreaterThan(-4);
    await clock.pass(SECOND);
    expect(new Set(await Promise.all(ends.slice(2)))).toEqual(new Set(["late 0"]));
    expect(await Promise.all([...ends.slice(0, 2), ...patient])).toEqual(["0 100", "1 200", "a 0", "b 300"]);
  });

  test("a call that is overtaken meanwhile rejects when it would run too late", async () => {
    const clock = fakeClock(START);
    const throttled = throttle((name: string) => name, limitOn(clock.now), { clock });
    const ends = [throttled("a"), throttled.with({ maxWait: 100 })("b")].map((call) => noted(clock, call));
    await clock.pass(50);
    ends.push(noted(clock, throttled.with({ priority: 9 })("c")));
    await clock.pass(SECOND);
    expect(await Promise.all(ends)).toEqual(["a 0", "late 100", "c 100"]);
  });
});

test.each([
  ["each by when it would run", 0, ["0 0", "1 100", "2 200", "late 0", "late 0", "late 0"]],
  ["where it arrives after `maxWait`", 251, ["late 251"]],
])("calls whose tokens are reserved by one response, as of a pipeline, are late: %s", async (_, after, expected) => {
  const clock = fakeClock(START);
  const inner = defineLimits({ api: spaced }, { now: clock.now });
  let respond = (): void => undefined;
  const response = new Promise<void>((resolve) => {
    respond = resolve;
  });
  const limiter = {
    limit: (name: "api", options: { count: number; reserve: true }) => {
      const decision = inner.limit(name, options);
      return response.then(() => decision);
    },
    give: async (name: "api", options: { count: number }) => inner.give(name, options),
    getValue: async (name: "api") => inner.getValue(name),
  };
  const throttled = throttle((name: number) => name, { limiter, name: "api" }, { clock, maxWait: 250 });
  const ends = expected.map((_, i) => noted(clock, throttled(i)));
  await clock.pass(after);
  respond();
  await clock.pass(SECOND);
  expect(await Promise.all(ends)).toEqual(expected);
});

test("with `maxWait: 0` a call that need not wait runs, though the clock goes on as it is made", async () => {
  let at = START;
  const clock = { ...fakeClock(START), now: () => at++ };
  const options = { clock, maxWait: 0 } as const;
  const limiter = defineLimits({ api: spaced }, { now: clock.now });
  const work = (): string => "done";
  for (const call of [
    throttle(work, spaced, options),
    throttle(work, { limiter, name: "api" }, options),
    concurrent(work, 1, options),
  ]) {
    const [first, second] = [call(), call().catch((error: QueueError) => error.reason)];
    expect([await first, await second]).toEqual(["done", "late"]);
  }
});

test("later changes to the object of options affect no call", async () => {
  const clock = fakeClock(START);
  const options = { clock, maxWait: 250 };
  const throttled = throttle((name: string) => name, spaced, options);
  options.maxWait = 0;
  const sent = { clock, limit: spaced, deadline: 250, fetch: async () => new Response("a") };
  const send = createFetch(sent);
  sent.deadline = 0;
  sent.fetch = async () => new Response("b");
  const text = async (): Promise<string> => (await send("https://api.example.com/")).text();
  const ends = [throttled("a"), throttled("b"), text(), text()].map((call) => noted(clock, call));
  await clock.pass(SECOND);
  expect(await Promise.all(ends)).toEqual(["a 0", "b 100", "a 0", "a 100"]);
});

test("`concurrent` rejects a call that has no place by `maxWait`", async () => {
  const clock = fakeClock(START);
  let end = (): void => undefined;
  const work = (): Promise<void> =>
    new Promise((done) => {
      end = done;
    });
  const load = concurrent(work, 1, { clock, maxWait: SECOND });
  const first = load();
  const ends = [load(), load()].map((call) => noted(clock, call));
  await clock.pass(5 * SECOND);
  expect([await Promise.all(ends), load.running, load.queued, clock.timers]).toEqual([
    ["late 1000", "late 1000"],
    1,
    0,
    0,
  ]);
  end();
  await first;
});

describe("`deadline` of a request that waits when another's response reports a long wait", () => {
  test.each([
    ["nothing left", 200, { RateLimit: '"a";r=0;t=3600' }],
    ["a denial", 429, { "Retry-After": "3600" }],
  ])("%s: it rejects, however many wait", async (_, status, fields) => {
    const clock = fakeClock(START);
    let sent = 0;
    const fetch = createFetch({
      clock,
      concurrency: 1,
      retries: 0,
      maxWait: HOUR,
      deadline: 10 * SECOND,
      jitter: 0,
      fetch: async () => new Response("", { status: sent++ === 0 ? status : 200, headers: fields as HeadersInit }),
    });
    const first = fetch(URL_);
    const ends = Array.from({ length: 5000 }, () => noted(clock, fetch(URL_)));
    await clock.pass(0);
    expect(new Set(await Promise.all(ends))).toEqual(new Set(["late 0"]));
    expect([(await first).status, sent, fetch.queued, clock.timers]).toEqual([status, 1, 0, 0]);
  });

  test("a denied request is retried ahead of those that wait for own tokens beyond its deadline", async () => {
    const clock = fakeClock(START);
    let sent = 0;
    const fetch = createFetch({
      clock,
      limit: { kind: "token bucket", rate: 1, period: SECOND },
      deadline: 10 * SECOND,
      jitter: 0,
      fetch: async () =>
        sent++ === 0 ? new Response("", { status: 429, headers: { "Retry-After": "2" } }) : new Response(""),
    });
    const first = noted(
      clock,
      fetch(URL_).then(({ status }) => status),
    );
    const others = Array.from({ length: 10 }, () => fetch(URL_));
    const ends = others.map((other) => noted(clock, other));
    await clock.pass(30 * SECOND);
    expect(await first).toBe("200 2000");
    // Its second token delays the last of them beyond their deadline.
    expect((await Promise.all(ends)).map((end) => end.split(" ")[0])).toEqual([
      ...Array.from({ length: 9 }, () => "[object"),
      "late",
    ]);
  });
});
