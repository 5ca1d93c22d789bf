/** A process's estimate of its server's clock: never too early, and more exact with each response. */
import fc from "fast-check";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { ServerClock } from "../src/stores/server-clock.ts";

/** Both local clocks, in µs, which a test moves; the server's is `ahead` of them and `fast` by so many ppm. */
let micros = 0;
let set = 0;
beforeEach(() => {
  micros = 5_000_000;
  set = 0;
  vi.spyOn(Date, "now").mockImplementation(() => Math.floor((micros + set) / 1000) + 1_700_000_000_000);
  vi.spyOn(performance, "now").mockImplementation(() => micros / 1000);
});

class Server {
  ahead: number;
  readonly #fast: number;
  constructor(ahead: number, fast = 0) {
    this.ahead = ahead;
    this.#fast = fast;
  }
  /** Integer ms, as a store stamps its responses. */
  now(): number {
    return Math.floor((micros * (1 + this.#fast / 1e6) + this.ahead) / 1000);
  }
}

/** One request, with so many µs there and back. */
function exchange(clock: ServerClock, server: Server, there: number, back: number): void {
  const mark = clock.mark();
  micros += there;
  const stamp = server.now();
  micros += back;
  clock.learn(mark, stamp);
}

const µs = fc.integer({ min: 0, max: 3000 });
const steps = fc.array(fc.record({ wait: fc.integer({ min: 0, max: 400_000 }), there: µs, back: µs }), {
  minLength: 1,
  maxLength: 60,
});

test("is unknown before any response", () => {
  const clock = new ServerClock();
  expect([clock.usual(), clock.latest()]).toEqual([undefined, undefined]);
});

test("is never behind a server whose clock is up to 500 ppm off, and within its round trips of it", () => {
  fc.assert(
    fc.property(fc.integer({ min: -1e9, max: 1e9 }), fc.integer({ min: -500, max: 500 }), steps, (ahead, fast, all) => {
      const [clock, server] = [new ServerClock(), new Server(ahead, fast)];
      for (const { wait, there, back } of all) {
        exchange(clock, server, there, back);
        const exact = () => (clock.latest() as number) - server.now();
        expect(exact()).toBeGreaterThanOrEqual(0);
        expect(exact()).toBeLessThanOrEqual(1 + Math.ceil((there + back) / 1000));
        micros += wait;
        expect(exact()).toBeGreaterThanOrEqual(0);
      }
    }),
  );
});

test("responses at other fractions of a ms narrow it down to the tick", () => {
  const [clock, server] = [new ServerClock(), new Server(123_456)];
  for (let i = 0; i < 50; i++) {
    exchange(clock, server, 50, 50);
    micros += 337;
  }
  let late = 0;
  for (let i = 0; i < 1000; i++) {
    micros += 1;
    if (clock.latest() !== server.now()) late++;
  }
  // 50 µs there and 20 µs between the observed fractions, plus drift.
  expect(late).toBeLessThanOrEqual(120);
});

describe("a clock that is set", () => {
  test.each([-3_600_000_000, -5000, 5000, 3_600_000_000])(
    "the server's, by %i µs: correct from the next response on",
    (by) => {
      const [clock, server] = [new ServerClock(), new Server(0)];
      for (let i = 0; i < 20; i++) exchange(clock, server, 100, 100);
      server.ahead += by;
      exchange(clock, server, 100, 100);
      for (let i = 0; i < 2000; i++) {
        micros += 10;
        const off = (clock.latest() as number) - server.now();
        expect(off).toBeGreaterThanOrEqual(0);
        expect(off).toBeLessThanOrEqual(2);
      }
    },
  );

  test("the local wall clock, back: no time is taken for earlier than it is", () => {
    const [clock, server] = [new ServerClock(), new Server(0)];
    exchange(clock, server, 100, 100);
    set = -60_000_000;
    micros += 1_000_000;
    expect(clock.latest()).toBeGreaterThanOrEqual(server.now());
  });

  test("the local steady clock stopped while the machine slept: the wall clock advances it", () => {
    const [clock, server] = [new ServerClock(), new Server(0)];
    exchange(clock, server, 100, 100);
    set = 60_000_000;
    server.ahead = 60_000_000;
    expect(clock.latest()).toBeGreaterThanOrEqual(server.now() - 1);
  });
});
