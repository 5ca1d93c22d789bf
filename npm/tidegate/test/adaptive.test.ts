import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type AdaptiveOptions, type AdaptiveRate, adaptiveRate, type Done } from "../src/limiter/adaptive.ts";
import { defineLimits, SECOND } from "../src/index.ts";
import { heap } from "../../../tests/support/heap.ts";
import { type FakeClock, fakeClock } from "../src/testing/clock.ts";

const USUAL = { floor: 5, ceiling: 400, period: SECOND, burst: 100, latency: 200, increase: 5 } as const;

/** A server that serves one request at a time; queued requests make responses late. */
class Server {
  perSecond: number;
  #freeAt = 0;
  #waiting: Request[] = [];
  /** Duration of the latest response, ms. */
  latest = 0;

  constructor(perSecond: number) {
    this.perSecond = perSecond;
  }
  send(client: Client, startedAt: number): void {
    this.#freeAt = Math.max(this.#freeAt, startedAt) + 1000 / this.perSecond;
    this.#waiting.push({ done: client.adaptive.begin(), startedAt, doneAt: this.#freeAt });
  }
  answer(now: number): void {
    const ended = this.#waiting.filter(({ doneAt }) => doneAt <= now);
    this.#waiting = this.#waiting.slice(ended.length);
    for (const { done, startedAt } of ended) {
      this.latest = now - startedAt;
      done();
    }
  }
}

interface Request {
  readonly done: Done;
  readonly startedAt: number;
  readonly doneAt: number;
}

interface Client {
  readonly name: string;
  readonly adaptive: AdaptiveRate;
  sent: number;
}

/** Clients that always send more than they are allowed, in steps of 5 ms. A seeded random number picks who is first. */
function simulate(perSecond: number, ...settings: Partial<AdaptiveOptions>[]) {
  const clock: FakeClock = fakeClock();
  const server = new Server(perSecond);
  const limits = defineLimits({}, { now: clock.now });
  const clients = settings.map(
    (own, i): Client => ({
      name: `client-${i}`,
      adaptive: adaptiveRate({ ...USUAL, now: clock.now, ...own }),
      sent: 0,
    }),
  );
  let seed = 1;
  const random = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  /** Requests per second that each client sent over so many seconds. */
  const run = (seconds: number): number[] => {
    for (const client of clients) client.sent = 0;
    for (let at = 0; at < seconds * 1000; at += 5) {
      clock.advance(5);
      server.answer(clock.now());
      const order = random() < 0.5 ? clients : clients.toReversed();
      for (const client of order) {
        while (limits.limit(client.name, { config: client.adaptive.config() }).ok) {
          client.sent++;
          server.send(client, clock.now());
        }
      }
    }
    return clients.map(({ sent }) => sent / seconds);
  };
  return { clock, server, clients, run };
}

/** The rate stays near the server's capacity, mostly below it, and responses stay fast. */
function follows({ server, run }: ReturnType<typeof simulate>): void {
  const [sent = 0] = run(60);
  expect(sent).toBeGreaterThan(server.perSecond * 0.7);
  expect(sent).toBeLessThan(server.perSecond * 1.02);
  expect(server.latest).toBeLessThan(1000);
}

describe("a server with a capacity", () => {
  test("overload: the rate drops to about the server's capacity and stays there", () => {
    const simulation = simulate(100, { start: 400 });
    simulation.run(60);
    follows(simulation);
  });

  test("a rate that starts at the floor rises to the server's capacity", () => {
    const simulation = simulate(100, {});
    simulation.run(60);
    follows(simulation);
  });

  test("recovery: the rate follows a server that slows down and recovers", () => {
    const simulation = simulate(100, {});
    simulation.run(60);
    simulation.server.perSecond = 25;
    simulation.run(60);
    follows(simulation);
    simulation.server.perSecond = 100;
    simulation.run(60);
    follows(simulation);
  });

  test("drift: the rate follows a capacity that changes constantly", () => {
    const simulation = simulate(80, {});
    simulation.run(30);
    for (let i = 0; i < 120; i++) {
      simulation.server.perSecond += 1;
      simulation.run(1);
    }
    follows(simulation);
  });

  test.each([
    [2, [400, 5]],
    [3, [400, 5, 150]],
  ])("%i instances with unequal initial rates converge to fair shares", (_, starts) => {
    const simulation = simulate(120, ...starts.map((start) => ({ start })));
    simulation.run(200);
    const sent = simulation.run(100);
    const sum = sent.reduce((a, b) => a + b);
    expect(sum).toBeGreaterThan(120 * 0.7);
    expect(sum).toBeLessThan(120 * 1.02);
    for (const share of sent) expect(Math.abs(share / sum - 1 / sent.length)).toBeLessThan(0.1);
  });
});

test("without a latency, requests that never end are not kept", () => {
  const adaptive = adaptiveRate({ floor: 5, ceiling: 400, period: SECOND });
  const before = heap();
  for (let i = 0; i < 100_000; i++) adaptive.begin();
  // A request that is kept takes about 70 bytes.
  expect(heap() - before).toBeLessThan(1_000_000);
  expect(adaptive.rate).toBe(5);
});

describe("a step", () => {
  const quiet = { floor: 10, ceiling: 100, period: SECOND, start: 50, increase: 10, decrease: 0.5 } as const;
  function stepping(options: Partial<AdaptiveOptions> = {}) {
    const clock = fakeClock();
    const adaptive = adaptiveRate({ ...quiet, now: clock.now, ...options });
    /** A second with so many requests, each answered after `latency` ms. */
    const second = ({ good = 0, bad = 0, late = 0, after = 0 }): number => {
      const sent = Array.from({ length: good + bad + late }, () => adaptive.begin());
      clock.advance(after);
      for (const done of sent.splice(0, good)) done();
      for (const done of sent.splice(0, bad)) done({ failed: true });
      clock.advance(SECOND - after);
      return adaptive.rate;
    };
    return { clock, adaptive, second };
  }

  test("increases if at least half of the rate was used, and never without requests", () => {
    const { second } = stepping();
    expect([second({ good: 24 }), second({ good: 25 }), second({}), second({ good: 30 })]).toEqual([50, 60, 60, 70]);
  });

  test("tolerates 10 % failures, and halves the rate above that", () => {
    const { second } = stepping();
    expect([second({ good: 45, bad: 5 }), second({ good: 53, bad: 7 })]).toEqual([60, 30]);
  });

  test("tolerates a share that is exactly the tolerance, whose product with the requests is rounded", () => {
    for (const tolerance of [0.29, 0.57, 0.58]) {
      const { second } = stepping({ tolerance });
      const bad = Math.round(100 * tolerance);
      expect([second({ good: 100 - bad, bad }), second({ good: 99 - bad, bad: bad + 1 })]).toEqual([60, 30]);
    }
  });

  test("counts a request longer than `latency` as failed before it ends", () => {
    const { second } = stepping({ latency: 300 });
    expect([second({ good: 50, after: 300 }), second({ good: 50, after: 301 }), second({ late: 1 })]).toEqual([
      60, 30, 15,
    ]);
  });

  test("ignores failures of requests that were sent before the rate dropped", () => {
    const { adaptive, clock, second } = stepping({ latency: 300 });
    const slow = [adaptive.begin(), adaptive.begin()];
    expect([second({}), second({ good: 9 })]).toEqual([25, 25]);
    for (const done of slow) done({ failed: true });
    clock.advance(SECOND);
    expect(adaptive.rate).toBe(25);
  });

  test("ignores failures of earlier requests without a `latency` too", () => {
    const { adaptive, clock, second } = stepping();
    const slow = adaptive.begin();
    expect(second({ bad: 10 })).toBe(25);
    slow({ failed: true });
    clock.advance(SECOND);
    expect(adaptive.rate).toBe(25);
  });

  test("adds up to the ceiling", () => {
    expect(stepping({ start: 95 }).second({ good: 96 })).toBe(100);
  });

  test("a clock that is set back begins a new step, and counts nothing of the old one", () => {
    let now = 1_000_000;
    const adaptive = adaptiveRate({ ...quiet, now: () => now });
    adaptive.begin()({ failed: true });
    now -= 10 * SECOND;
    expect(adaptive.rate).toBe(50);
    now += SECOND;
    expect(adaptive.rate).toBe(50);
  });

  test("counts late requests after a clock that was set back, too", () => {
    let now = 1_000_000;
    const adaptive = adaptiveRate({ ...quiet, latency: 300, now: () => now });
    adaptive.begin();
    now -= 10 * SECOND;
    adaptive.begin();
    now += SECOND;
    expect(adaptive.rate).toBe(25);
  });

  test("a late request counts once, however it ends", () => {
    const { adaptive, second } = stepping({ latency: 300, tolerance: 0.4 });
    const late = adaptive.begin(30);
    expect(second({ good: 2 })).toBe(60);
    adaptive.begin(30)();
    late({ failed: true });
    late({ failed: true });
    expect(second({})).toBe(70);
  });

  test("does not count a request that has been in flight for `latency`, and no longer", () => {
    const { adaptive, clock } = stepping({ latency: 300 });
    adaptive.begin(30)();
    clock.advance(700);
    adaptive.begin();
    clock.advance(300);
    expect(adaptive.rate).toBe(60);
  });

  test("does not increase while no request has ended", () => {
    const { adaptive, second } = stepping();
    adaptive.begin(30);
    expect(second({})).toBe(50);
  });

  test("counts the requests that end in it", () => {
    const { adaptive, clock } = stepping();
    const done = adaptive.begin();
    clock.advance(1500);
    done({ failed: true });
    clock.advance(SECOND - 1);
    expect(adaptive.rate).toBe(50);
    clock.advance(1);
    expect(adaptive.rate).toBe(25);
  });

  test("increases by a hundredth of the distance from floor to ceiling by default", () => {
    const { adaptive, second } = stepping({ increase: undefined, ceiling: 110 });
    adaptive.begin(30)();
    expect(second({})).toBe(51);
  });

  test("a clock that steps back does not stop it", () => {
    const { clock, second } = stepping();
    expect(second({ bad: 9 })).toBe(25);
    clock.advance(-3_600_000);
    expect([second({ bad: 9 }), second({ bad: 9 })]).toEqual([12.5, 10]);
  });

  test("`run` reports the outcome of its function and returns its value or error", async () => {
    const { clock, adaptive } = stepping({ tolerance: 0 });
    expect(await adaptive.run(() => "value", 30)).toBe("value");
    clock.advance(SECOND);
    expect(adaptive.rate).toBe(60);
    await expect(adaptive.run(() => Promise.reject(new Error("503")))).rejects.toThrow("503");
    clock.advance(SECOND);
    expect(adaptive.rate).toBe(30);
  });

  test("the rate stays between floor and ceiling for any outcomes", () => {
    const outcome = fc.record({
      failed: fc.boolean(),
      ends: fc.boolean(),
      wait: fc.integer({ min: -5000, max: 5000 }),
    });
    fc.assert(
      fc.property(fc.array(outcome, { maxLength: 200 }), (all) => {
        const { clock, adaptive } = stepping({ latency: 500 });
        for (const { failed, ends, wait } of all) {
          const done = adaptive.begin(40);
          clock.advance(wait);
          if (ends) done({ failed });
          expect(adaptive.rate).toBeGreaterThanOrEqual(10);
          expect(adaptive.rate).toBeLessThanOrEqual(100);
          const { rate, capacity } = adaptive.config();
          expect(capacity).toBe(rate);
        }
      }),
    );
  });
});

test("a debt survives a change of rate, and is repaid at the new rate", () => {
  const clock = fakeClock();
  const limits = defineLimits({}, { now: clock.now });
  const adaptive = adaptiveRate({ floor: 10, ceiling: 100, period: SECOND, start: 100, decrease: 0.5, now: clock.now });
  const first = adaptive.config();
  expect(adaptive.config()).toBe(first);
  limits.charge("upstream", { config: first, count: 200 });
  adaptive.begin()({ failed: true });
  clock.advance(SECOND);
  const config = adaptive.config();
  expect(config).toEqual({ kind: "token bucket", rate: 50, period: SECOND, capacity: 50 });
  // The elapsed second refills at the rate at the time of the call: 50 of the 100 owed tokens.
  expect(limits.limit("upstream", { config })).toMatchObject({ ok: false, value: -50, retryAfter: 1020 });
});

describe("fake timers of a test runner", () => {
  afterEach(() => void vi.useRealTimers());

  test("move the rate that a module has made before them", () => {
    const adaptive = adaptiveRate({ floor: 5, ceiling: 400, period: SECOND, start: 400, decrease: 0.5 });
    vi.useFakeTimers();
    adaptive.begin()({ failed: true });
    vi.advanceTimersByTime(SECOND);
    expect(adaptive.rate).toBe(200);
  });
});

test("a rate of less than one token per burst still grants one", () => {
  const adaptive = adaptiveRate({ floor: 0.1, ceiling: 1, period: SECOND });
  expect(adaptive.config()).toMatchObject({ rate: 0.1, capacity: 1 });
});

test.each<[Partial<Record<keyof AdaptiveOptions | "flor", unknown>>, string]>([
  [{ floor: 0 }, "`floor` must be a finite number of tokens above 0"],
  [{ ceiling: 4 }, "`ceiling` must be a finite number of tokens from floor (5) to"],
  [{ start: null }, "`start` must be a number of tokens from floor (5) to ceiling (400); got null"],
  [{ period: 1.5 }, "`period` must be an integer of ms from 1 to"],
  [{ start: 401 }, "`start` must be a number of tokens from floor (5) to ceiling (400); got 401"],
  [{ burst: Number.NaN }, "`burst` must be"],
  [{ latency: 0 }, "`latency` must be a number of ms above 0"],
  [{ tolerance: 1 }, "`tolerance` must be"],
  [{ increase: -1 }, "`increase` must be"],
  [{ decrease: 1 }, "`decrease` must be a number above 0 and below 1"],
  [{ every: 0 }, "`every` must be"],
  [{ now: 5 }, "`now` must be a function"],
  [{ now: () => Number.NaN }, "`now` must be a function that returns a finite number of ms; got NaN"],
  [{ now: () => new Date() }, "`now` must be a function that returns a finite number of ms; got"],
  [{ flor: 1 }, "`flor` must be absent"],
])("throws immediately for an invalid option: %j", (wrong, message) => {
  expect(() => adaptiveRate({ ...USUAL, ...wrong } as AdaptiveOptions)).toThrow(message);
});

test("an invalid argument throws and changes nothing", () => {
  const adaptive = adaptiveRate(USUAL);
  expect(() => adaptive.begin(-1)).toThrow("`count` must be a finite number of tokens");
  const done = adaptive.begin();
  expect(() => done({ failed: 1 as never })).toThrow("`failed` must be true or false; got 1");
  expect(() => done({ fialed: true } as never)).toThrow("`fialed` must be absent: an ended request has failed");
  expect(() => done(null as never)).toThrow("`ended` must be an object with failed");
  done();
});
