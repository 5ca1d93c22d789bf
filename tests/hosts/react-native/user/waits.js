// What waits in an app, in an engine that has neither `AbortController`, `Array.prototype.at`, `atob` nor timers of its own.
import { createFetch, throttle } from "tidegate/client";
import { fakeClock } from "tidegate/testing";

const limit = { kind: "token bucket", rate: 10, period: 1000, capacity: 1 };

async function settled() {
  for (let i = 0; i < 100; i++) await undefined;
}

async function pass(clock, ms) {
  await settled();
  for (let passed = 0; passed < ms; passed += 50) {
    clock.advance(50);
    await settled();
  }
}

const TESTS = {
  async "calls are spaced, and an aborted one returns its tokens"() {
    const clock = fakeClock(0);
    const at = throttle(() => clock.now(), limit, { clock });
    const listeners = new Set();
    const signal = {
      aborted: false,
      addEventListener: (_type, listener) => listeners.add(listener),
      removeEventListener: (_type, listener) => listeners.delete(listener),
    };
    const calls = [
      at(),
      at
        .with({ signal })()
        .catch(({ name }) => name),
      at(),
    ];
    signal.aborted = true;
    for (const listener of [...listeners]) listener();
    await pass(clock, 1000);
    return [await Promise.all(calls), [0, "AbortError", 100]];
  },

  async "a request waits for the time that a server reports"() {
    // React Native has one, of which older ones lack `origin`.
    globalThis.URL ??= class {
      constructor(href) {
        this.href = href;
      }
    };
    const clock = fakeClock(0);
    const sent = [];
    const fields = { "RateLimit-Policy": '"api";q=10;w=60;pk=:aGVsbG8=:', RateLimit: '"api";r=0;t=2;pk=:aGVsbG8=:' };
    const request = createFetch({
      clock,
      key: () => "api",
      async fetch() {
        sent.push(clock.now());
        return { status: 200, headers: { get: (name) => fields[name] ?? null } };
      },
    });
    const first = await request("https://api.example/");
    const second = request("https://api.example/");
    await pass(clock, 2000);
    return [
      [first.status, (await second).status, ...sent],
      [200, 200, 0, 2000],
    ];
  },
};

/** The result of each test, in the suite's format. */
export async function waits() {
  const results = [];
  for (const [name, test] of Object.entries(TESTS)) {
    const [got, expected] = (await test().catch((error) => [`${error}`])).map((value) => JSON.stringify(value));
    results.push({ name: `waits: ${name}`, ...(got === expected ? {} : { error: `${got}, not ${expected}` }) });
  }
  return results;
}
