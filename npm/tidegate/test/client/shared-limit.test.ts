/** Several queues on one limit: what one returns, and what the others have reserved meanwhile. */
import { describe, expect, test } from "vitest";
import { throttle } from "../../src/client/index.ts";
import { defineLimits, SECOND } from "../../src/index.ts";
import { fakeClock } from "../../src/testing/index.ts";
import { later } from "../middleware/later.ts";

test("an abort delays no earlier call of its queue, and returns no token that others have reserved behind", async () => {
  const clock = fakeClock(0);
  const spaced = { kind: "token bucket", rate: 10, period: SECOND, capacity: 1 } as const;
  const limiter = defineLimits({ api: spaced }, { now: clock.now });
  const ran: [string, number][] = [];
  const queue = () =>
    throttle((name: string) => void ran.push([name, clock.now()]), { limiter, name: "api" }, { clock });
  const [one, other] = [queue(), queue()];
  const abortable = (name: string) => {
    const client = new AbortController();
    one
      .with({ signal: client.signal })(name)
      .catch(() => undefined);
    return client;
  };
  void other("first");
  const middle = abortable("middle");
  void one("kept");
  void other("second");
  void other("third");
  const last = abortable("last");
  last.abort();
  expect(limiter.getValue("api").value).toBe(-4);
  // A call moves up to its time. The time of that call, 200 ms, has reservations behind it.
  middle.abort();
  expect(limiter.getValue("api").value).toBe(-4);
  await clock.pass(SECOND);
  expect(ran).toEqual([
    ["first", 0],
    ["kept", 100],
    ["second", 300],
    ["third", 400],
  ]);
});

test("a queue on a store that returns promises is idle after calls of fractions, whose sums are rounded", async () => {
  const clock = fakeClock();
  const api = { kind: "token bucket", rate: 10, period: SECOND, capacity: 9 } as const;
  const limiter = defineLimits({ api }, { now: clock.now, store: later() });
  const throttled = throttle(
    (tokens: number) => tokens,
    { limiter, name: "api" },
    { clock, count: (tokens) => tokens },
  );
  for (const tokens of [0.1, 0.2, 0.3]) void throttled(tokens);
  await clock.pass(0);
  expect(await Promise.race([throttled.idle().then(() => "idle"), clock.pass(SECOND)])).toBe("idle");
});

/** A queue whose calls take the tokens that they are given, and the times at which they ran. */
function counting(numbers: { readonly rate: number; readonly capacity: number }) {
  const clock = fakeClock(0);
  const limiter = defineLimits({ api: { kind: "token bucket", period: SECOND, ...numbers } }, { now: clock.now });
  const ran: number[] = [];
  const throttled = throttle(
    (_: number) => void ran.push(clock.now()),
    { limiter, name: "api" },
    { clock, count: (tokens) => tokens },
  );
  return { throttled, ran, clock };
}

test("a call runs on what an aborted one left, if that is too little by rounding", async () => {
  const { throttled, ran, clock } = counting({ rate: 10, capacity: 1 });
  const client = new AbortController();
  void throttled(0.2);
  const aborted = throttled.with({ signal: client.signal })(0.9);
  void throttled(0.1);
  client.abort();
  await expect(aborted).rejects.toThrow();
  await clock.pass(SECOND);
  expect(ran).toEqual([0, 0]);
});

test("a small call behind a large one waits for its own tokens", async () => {
  const { throttled, ran, clock } = counting({ rate: 1, capacity: 3e9 });
  for (const tokens of [3e9, 1, 0.5]) void throttled(tokens);
  await clock.pass(2 * SECOND);
  expect(ran).toEqual([0, SECOND, 1.5 * SECOND]);
});

describe.each([
  ["in memory", () => ({})],
  ["on a store that returns promises", () => ({ store: later(), timeout: "1h" as const })],
])("every call runs, %s", (_, options) => {
  /** Makes the calls together, and then each of the `small` ones. Returns how many have run. */
  async function play(together: readonly number[], small: readonly number[]): Promise<number> {
    const clock = fakeClock();
    const api = { kind: "token bucket", rate: 1e9, period: SECOND } as const;
    const limiter = defineLimits({ api }, { now: clock.now, ...options() });
    let ran = 0;
    const throttled = throttle((_: number) => ran++, { limiter, name: "api" }, { clock, count: (tokens) => tokens });
    for (const calls of [together, ...small.map((tokens) => [tokens])]) {
      for (const tokens of calls) void throttled(tokens);
      await clock.pass(4 * SECOND);
    }
    return ran;
  }

  test.each([1e-10, 1e-7, 1])("a small one behind a large one: %d tokens", async (small) => {
    expect(await play([3e9, small], [small])).toBe(3);
  });

  test("a small one after a thousand that need fractions of a token, whose sums are rounded", async () => {
    const fractions = Array.from({ length: 1000 }, (_, i) => 1e5 * Math.sqrt(i));
    expect(await play(fractions, [0.001, 0.002, 0.003])).toBe(1003);
  });
});
