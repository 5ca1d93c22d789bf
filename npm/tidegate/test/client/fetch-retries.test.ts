/** A retry is part of a request that was accepted: no queue that is drained or full refuses it. */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createFetch } from "../../src/client/index.ts";
import { ServerPace } from "../../src/client/server-pace.ts";
import { defineLimits, SECOND } from "../../src/index.ts";
import { fakeClock } from "../../src/testing/index.ts";

const URL_ = "https://api.example.com/things";

/** A server that denies the first request for a second. */
function denying() {
  const clock = fakeClock(1_772_366_400_000);
  let sent = 0;
  const fetch = async (): Promise<Response> =>
    ++sent === 1 ? new Response("", { status: 429, headers: { "Retry-After": "1" } }) : new Response(`answer ${sent}`);
  return { clock, fetch };
}

test("a request in flight that is denied after drain() is retried, and drain() waits for it", async () => {
  const { clock, fetch: send } = denying();
  const fetch = createFetch({ clock, jitter: 0, fetch: send });
  const answered = fetch(URL_).then((response) => response.text());
  let drained = false;
  const draining = fetch.drain().then(() => {
    drained = true;
  });
  await clock.pass(0);
  expect([drained, fetch.queued]).toEqual([false, 1]);
  await clock.pass(SECOND);
  expect(await answered).toBe("answer 2");
  await draining;
  await expect(fetch(URL_)).rejects.toMatchObject({ reason: "closed" });
});

test.each<[string, () => unknown]>([
  [
    "throws",
    () => {
      throw new Error("no log");
    },
  ],
  ["rejects", () => Promise.reject(new Error("no log"))],
])("a denied request is retried where `onRetry` %s", async (_, onRetry) => {
  const unhandled = vi.fn();
  process.on("unhandledRejection", unhandled);
  const { clock, fetch: send } = denying();
  const answered = createFetch({ clock, jitter: 0, fetch: send, onRetry: () => onRetry() })(URL_);
  await clock.pass(SECOND);
  expect(await (await answered).text()).toBe("answer 2");
  await new Promise(setImmediate);
  process.off("unhandledRejection", unhandled);
  expect(unhandled).not.toHaveBeenCalled();
});

test("a signal of null replaces the request's own, as for fetch", async () => {
  const { clock, fetch: send } = denying();
  const fetch = createFetch({ clock, jitter: 0, fetch: send });
  const request = new Request(URL_, { signal: AbortSignal.abort() });
  await expect(fetch(request)).rejects.toMatchObject({ name: "AbortError" });
  const answered = fetch(request, { signal: null });
  await clock.pass(SECOND);
  expect((await answered).status).toBe(200);
});

test("a denied request is retried although its queue is full", async () => {
  const { clock, fetch: send } = denying();
  const fetch = createFetch({ clock, jitter: 0, fetch: send, maxQueued: 1, concurrency: 1 });
  const first = fetch(URL_).then((response) => response.text());
  await Promise.resolve();
  const second = fetch(URL_).then((response) => response.text());
  await clock.pass(2 * SECOND);
  expect(await Promise.all([first, second])).toEqual(["answer 2", "answer 3"]);
});

test.each(["token bucket", "fixed window"] as const)(
  "a burst that a %s denies is retried a few at once, the oldest first, so that the usual retries are enough",
  async (kind) => {
    const clock = fakeClock(1_772_366_400_000);
    const limits = defineLimits({ api: { kind, rate: 20, period: 10 * SECOND } }, { now: clock.now });
    const granted: string[] = [];
    const send = async (input: unknown): Promise<Response> => {
      const { ok, retryAfter = 0 } = limits.limit("api");
      if (ok) granted.push(String(input));
      const headers = { "Retry-After": String(Math.ceil(retryAfter / 1000)) };
      await new Promise<void>((answered) => void clock.setTimeout(answered, 100));
      return ok ? new Response("") : new Response("", { status: 429, headers });
    };
    const fetch = createFetch({ clock, jitter: 0, fetch: send });
    const urls = Array.from({ length: 100 }, (_, i) => `${URL_}/${i}`);
    const answers = Promise.all(urls.map(async (url) => (await fetch(url)).status));
    // The eighty after the first twenty take forty seconds at least.
    await clock.pass(50 * SECOND);
    expect(new Set(await answers)).toEqual(new Set([200]));
    // Of two that a refill is between, the later one may have been granted first.
    const moved = granted.map((url, i) => Math.abs(urls.indexOf(url) - i));
    expect(Math.max(...moved)).toBeLessThan(5);
  },
);

test.each([
  [1, 100, 300, 240],
  [100, 10, 1000, 45],
])(
  "a server of %i a second and a burst of %i grants %i requests in %i s, and none uses up its retries",
  async (rate, capacity, requests, seconds) => {
    // The waits differ, as by default, and are the same in each run.
    const random = vi.spyOn(Math, "random").mockReturnValue(0.5);
    const clock = fakeClock(1_772_366_400_000);
    const limits = defineLimits({ api: { kind: "token bucket", rate, period: SECOND, capacity } }, { now: clock.now });
    const halfway = () => new Promise<void>((arrived) => void clock.setTimeout(arrived, 50));
    const send = async (): Promise<Response> => {
      await halfway();
      const { ok, retryAfter = 0 } = limits.limit("api");
      await halfway();
      const headers = { "Retry-After": String(Math.ceil(retryAfter / 1000)) };
      return new Response("", ok ? {} : { status: 429, headers });
    };
    const fetch = createFetch({ clock, fetch: send });
    random.mockRestore();
    const statuses: number[] = [];
    for (let i = 0; i < requests; i++) void fetch(URL_).then(({ status }) => statuses.push(status));
    await clock.pass(seconds * SECOND);
    expect(statuses).toEqual(Array.from({ length: requests }, () => 200));
  },
);

test("after a denial there is one more request in flight with each round of grants, though further ones are made", async () => {
  const clock = fakeClock(1_772_366_400_000);
  const inFlight: number[] = [];
  const fetch = createFetch({
    clock,
    jitter: 0,
    fetch: async () => {
      inFlight.push(fetch.running);
      await new Promise<void>((answered) => void clock.setTimeout(answered, 100));
      return clock.now() < 1_772_366_400_000 + SECOND ? new Response("", { status: 429 }) : new Response("");
    },
  });
  const answers = Array.from({ length: 16 }, () => fetch(URL_));
  await clock.pass(SECOND / 2);
  answers.push(fetch(URL_));
  await clock.pass(2.5 * SECOND);
  await Promise.all(answers);
  expect(inFlight.slice(0, 16)).toEqual(Array(16).fill(16));
  expect(inFlight.slice(16, 26)).toEqual([1, 2, 2, 3, 3, 3, 4, 4, 4, 4]);
});

const POLL = "https://api.example.com/poll";

/** A client of the same server, which never answers {@link POLL}. */
function polled() {
  const { clock, fetch: send } = denying();
  const answer = async (input: unknown): Promise<Response> => (input === POLL ? new Promise(() => {}) : send());
  return { clock, fetch: createFetch({ clock, jitter: 0, fetch: answer }) };
}

test("a request in flight that gets no answer leaves a place to one that was denied beside it", async () => {
  const { clock, fetch } = polled();
  void fetch(POLL);
  const answered = fetch(URL_).then((response) => response.text());
  await clock.pass(SECOND);
  expect(fetch.queued).toBe(0);
  expect(await answered).toBe("answer 2");
});

test("a denial that is over bounds no later requests", async () => {
  const { clock, fetch } = polled();
  expect((await fetch(URL_, { method: "POST" })).status).toBe(429);
  await clock.pass(SECOND);
  void fetch(POLL);
  const answered = fetch(URL_);
  await clock.pass(0);
  expect(fetch.queued).toBe(0);
  expect(await (await answered).text()).toBe("answer 2");
});

test.each<[string, Record<string, string>]>([
  ["0", { "Retry-After": "0" }],
  ["a date that has passed", { "Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT" }],
  ["the server's own second, as a shorter wait is in a date", { "Retry-After": "@now", Date: "@now" }],
  ["a reset of 0", { "RateLimit-Remaining": "0", "RateLimit-Reset": "0" }],
])("where the server's wait is %s, retries back off: none is used up within an instant", async (_, fields) => {
  const clock = fakeClock(1_772_366_400_000);
  const times: number[] = [];
  const send = async (): Promise<Response> => {
    const now = new Date(clock.now()).toUTCString();
    times.push(clock.now() - 1_772_366_400_000);
    const headers = Object.entries(fields).map(([name, value]): [string, string] => [name, value.replace("@now", now)]);
    return new Response("", { status: times.length < 4 ? 429 : 200, headers });
  };
  const answered = createFetch({ clock, jitter: 0, fetch: send })(URL_);
  await clock.pass(60 * SECOND);
  expect((await answered).status).toBe(200);
  expect(times).toEqual([0, 1000, 3000, 7000]);
});

test("`retry` chooses the responses that are retried, and leaves the others to the default", async () => {
  const clock = fakeClock(1_772_366_400_000);
  const statuses = [529, 429, 503];
  const send = async (): Promise<Response> => new Response("", { status: statuses.shift() ?? 200 });
  const retry = ({ status }: Response): boolean | undefined => (status === 429 ? undefined : status === 529);
  const answered = createFetch({ clock, jitter: 0, fetch: send, retry })(URL_);
  await clock.pass(10 * SECOND);
  expect((await answered).status).toBe(503);
  expect(statuses).toEqual([]);
});

test("a `retry` that returns a promise fails the request, with its name", async () => {
  const { clock, fetch: send } = denying();
  const fetch = createFetch({ clock, fetch: send, retry: (async () => true) as never });
  await expect(fetch(URL_)).rejects.toThrow("`retry` must be true or false; got a promise");
});

test.each([
  [
    "with <base>",
    { baseURI: "https://cdn.example.com/app/" },
    "https://app.example.com/",
    "https://cdn.example.com/app/a",
  ],
  ["of a frame with srcdoc", { baseURI: "https://app.example.com/" }, "about:srcdoc", "https://app.example.com/a"],
  ["of a worker", undefined, "https://app.example.com/worker.js", "https://app.example.com/a"],
])("a relative URL in a document %s is that of the host's fetch", async (_, document, href, expected) => {
  vi.stubGlobal("document", document);
  vi.stubGlobal("location", { href });
  const seen: string[] = [];
  const key = (url: URL) => {
    seen.push(url.href);
    return url.origin;
  };
  await createFetch({ key, fetch: async () => new Response("") })("a");
  expect(seen).toEqual([expected]);
});

test("a denial with a wait beyond `maxWait` is returned, and the requests behind it wait as long as the server requires", async () => {
  const clock = fakeClock(0);
  const times: number[] = [];
  const send = async (): Promise<Response> => {
    times.push(clock.now());
    return new Response("", clock.now() < 120 * SECOND ? { status: 429, headers: { "Retry-After": "120" } } : {});
  };
  const fetch = createFetch({ clock, jitter: 0, concurrency: 1, fetch: send });
  const first = fetch(URL_);
  const second = fetch(URL_);
  expect((await first).status).toBe(429);
  await clock.pass(120 * SECOND);
  expect([(await second).status, times]).toEqual([200, [0, 120 * SECOND]]);
});

// As GitHub may: a pause of 5 s, and nothing left of the hour's limit for 40 minutes.
test.each([
  ["`maxWait`", {}, [429, 200]],
  ["`deadline`", { maxWait: 3_600_000, deadline: 60_000 }, [429, "late"]],
  ["neither", { maxWait: 3_600_000 }, [200, 200]],
])(
  "a denial whose `Retry-After` ends before an empty limit's reset, which is beyond %s",
  async (_, options, expected) => {
    const clock = fakeClock(0);
    const headers = { "Retry-After": "5", RateLimit: '"pause";r=0;t=5, "hour";r=0;t=2400' };
    const times: number[] = [];
    const send = async (): Promise<Response> => {
      times.push(clock.now());
      return new Response("", clock.now() < 2400 * SECOND ? { status: 429, headers } : {});
    };
    const waits: number[] = [];
    const fetch = createFetch({ ...options, clock, jitter: 0, fetch: send, onRetry: ({ wait }) => waits.push(wait) });
    const outcomeOf = async () =>
      fetch(URL_).then(
        ({ status }) => status,
        ({ reason }) => reason,
      );
    const first = outcomeOf();
    await clock.pass(SECOND);
    const second = outcomeOf();
    await clock.pass(2400 * SECOND);
    expect([await first, await second]).toEqual(expected);
    expect(times.every((at) => at === 0 || at === 2400 * SECOND)).toBe(true);
    expect(waits).toEqual(expected[0] === 200 ? [2400 * SECOND] : []);
  },
);

describe("after requests to 2,000 other hosts", () => {
  const others = async (fetch: (url: string) => Promise<unknown>) => {
    for (let i = 0; i < 2000; i++) await fetch(`https://${i}.example/`);
  };

  test.each([
    ["a denial", { status: 429, headers: { "Retry-After": "3600" } }, ["late", "late"]],
    ["a limit of which nothing is left", { headers: { RateLimit: '"hour";r=0;t=3600' } }, ["late", "late"]],
    [
      "a limit of which little is left, but the first",
      { headers: { RateLimit: '"hour";r=1;t=3600', "RateLimit-Policy": '"hour";q=9' } },
      [200, "late"],
    ],
  ])("requests still wait for %s", async (_, init, expected) => {
    const clock = fakeClock(0);
    const send = async (input: unknown) => new Response("", input === URL_ ? init : {});
    const fetch = createFetch({ clock, fetch: send, deadline: SECOND });
    await fetch(URL_);
    await others(fetch);
    const outcomes: unknown[] = [];
    for (let i = 0; i < 2; i++) {
      outcomes.push(
        await fetch(URL_).then(
          ({ status }) => status,
          ({ reason }) => reason,
        ),
      );
    }
    expect(outcomes).toEqual(expected);
  });

  test("nothing is kept of a denial that is over", async () => {
    const clock = fakeClock(0);
    const learn = vi.spyOn(ServerPace.prototype, "learn");
    onTestFinished(() => learn.mockRestore());
    const denial = { status: 429, headers: { "Retry-After": "3600" } };
    const fetch = createFetch({ clock, fetch: async (input) => new Response("", input === URL_ ? denial : {}) });
    await fetch(URL_);
    await clock.pass(3600 * SECOND + 60 * SECOND);
    await others(fetch);
    await fetch(URL_);
    expect(learn.mock.contexts.at(-1)).not.toBe(learn.mock.contexts[0]);
  });
});

/** What requests get that are redirected with these statuses, each before one of the key's own. */
const [NOT_READ, READ] = [
  [429, 200, 503, 200, 200, 200],
  [429, "late", "late", "late", "late", "late"],
];

test.each([
  ["elsewhere.example", NOT_READ],
  // It only ends with the same letters.
  ["my-api.example.com", NOT_READ],
  // The same host, such as on https; a subdomain, and what it is a subdomain of.
  ["api.example.com", READ],
  ["www.api.example.com", READ],
  ["example.com", READ],
])("a wait of ten years that %s asks for, to which a redirect led: requests get %j", async (host, expected) => {
  const clock = fakeClock(1_772_366_400_000);
  const tenYears = { "Retry-After": "315360000", RateLimit: '"all";r=0;t=315360000' };
  const fetch = createFetch({
    clock,
    deadline: SECOND,
    fetch: async (input) => {
      const [, status] = String(input).split("?");
      if (status === undefined) return new Response("own");
      const response = new Response("", { status: Number(status), headers: tenYears });
      return Object.defineProperties(response, { redirected: { value: true }, url: { value: `https://${host}/` } });
    },
  });
  const outcomeOf = (url: string): Promise<unknown> =>
    fetch(url).then(
      ({ status }) => status,
      ({ reason }) => reason,
    );
  const outcomes: unknown[] = [];
  for (const status of [429, 503, 200]) outcomes.push(await outcomeOf(`${URL_}?${status}`), await outcomeOf(URL_));
  expect(outcomes).toEqual(expected);
});
