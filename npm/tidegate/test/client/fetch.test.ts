import { describe, expect, test, vi } from "vitest";
import { createFetch, type FetchOptions, type Retry } from "../../src/client/index.ts";
import { SECOND } from "../../src/index.ts";
import { fakeClock } from "../../src/testing/index.ts";
import { DIALECTS } from "./dialects.ts";

const START = 1_772_366_400_000;
const URL_ = "https://api.example.com/things";

interface Answer {
  status?: number;
  fields?: Record<string, string>;
}

/** A server as a function: returns these responses in order, the last one repeatedly. */
function serving(...answers: Answer[]) {
  const clock = fakeClock(START);
  const sent: { at: number; url: string; method: string; body: string }[] = [];
  const fetch = (async (input: RequestInfo | URL, init?: RequestInit) => {
    const request = new Request(input, init);
    sent.push({ at: clock.now() - START, url: request.url, method: request.method, body: await request.text() });
    const { status = 200, fields = {} } = answers[Math.min(sent.length, answers.length) - 1] ?? {};
    return new Response(`answer ${sent.length}`, { status, headers: fields });
  }) as typeof globalThis.fetch;
  const retries: Retry[] = [];
  const onRetry = (retry: Retry): void => void retries.push(retry);
  const make = (options: FetchOptions = {}) => createFetch({ clock, fetch, jitter: 0, onRetry, ...options });
  const times = (): number[] => sent.map(({ at }) => at);
  return { clock, sent, times, retries, make };
}
const many = (count: number, call: (i: number) => Promise<Response>): Promise<Response>[] =>
  Array.from({ length: count }, (_, i) => call(i));

describe("own tokens", () => {
  const limit = { kind: "token bucket", rate: 1, period: SECOND } as const;

  test("requests are spaced, separately for each origin", async () => {
    const { clock, sent, make } = serving({});
    const fetch = make({ limit });
    const all = many(6, (i) => fetch(`https://${i % 2 === 0 ? "a" : "b"}.example.com/${i}`));
    await clock.pass(5 * SECOND);
    await Promise.all(all);
    expect(sent.map(({ url, at }) => `${url.slice(8, 9)} ${at}`)).toEqual([
      "a 0",
      "b 0",
      "a 1000",
      "b 1000",
      "a 2000",
      "b 2000",
    ]);
  });

  test("requests are spaced per `key`, take their `count`, and are refused beyond `maxQueued`", async () => {
    const { clock, times, make } = serving({});
    const fetch = make({
      limit: { ...limit, capacity: 2 },
      key: (url) => url.searchParams.get("account") ?? "",
      count: (_, init) => (init?.method === "POST" ? 2 : 1),
      maxQueued: 2,
    });
    const all = [fetch(`${URL_}?account=1`, { method: "POST" }), fetch(`${URL_}?account=2`)];
    await clock.pass(0);
    all.push(fetch(`${URL_}?account=1`, { method: "POST" }), fetch(`${URL_}?account=1`));
    await expect(fetch(`${URL_}?account=1`)).rejects.toMatchObject({ reason: "full" });
    await clock.pass(5 * SECOND);
    await Promise.all(all);
    expect(times()).toEqual([0, 0, 2000, 3000]);
  });

  test("an abort while waiting rejects with the signal's reason, and the next request moves up", async () => {
    const { clock, times, make } = serving({});
    const fetch = make({ limit });
    const gone = new AbortController();
    const first = fetch(URL_);
    const aborted = fetch(URL_, { signal: gone.signal });
    const last = fetch(new Request(URL_));
    await clock.pass(500);
    gone.abort(new Error("closed"));
    await expect(aborted).rejects.toThrow("closed");
    await clock.pass(5 * SECOND);
    await Promise.all([first, last]);
    expect(times()).toEqual([0, 1000]);
  });

  test("rejects immediately if its own tokens come after the deadline", async () => {
    const { make } = serving({});
    const fetch = make({ limit, deadline: 1500 });
    void fetch(URL_);
    void fetch(URL_);
    await expect(fetch(URL_)).rejects.toMatchObject({ code: "TIDEGATE_QUEUE", reason: "late" });
  });
});

describe("limits that the server reports", () => {
  test("spreads the last tokens over the time until the reset, before any denial", async () => {
    const fields = { "X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "4", "X-RateLimit-Reset": "8" };
    const { clock, times, make } = serving({ fields });
    const fetch = make({ concurrency: 1 });
    const all = many(5, () => fetch(URL_));
    await clock.pass(60 * SECOND);
    await Promise.all(all);
    const waits = times().map((at, i, from) => at - (from[i - 1] ?? 0));
    expect(waits).toEqual([0, 0, 2000, 2000, 2000]);
  });

  test("no request waits while many tokens are left", async () => {
    const fields = { RateLimit: '"a";r=900;t=60', "RateLimit-Policy": '"a";q=1000;w=60' };
    const { clock, times, make } = serving({ fields });
    const fetch = make();
    for (let i = 0; i < 5; i++) await fetch(URL_);
    await clock.pass(0);
    expect(times()).toEqual([0, 0, 0, 0, 0]);
  });

  test("the next request waits until the reset, and no longer, if no tokens are left", async () => {
    const { clock, times, make } = serving({ fields: { RateLimit: '"a";r=0;t=7' } }, {});
    const fetch = make();
    await fetch(URL_);
    const next = fetch(URL_);
    await clock.pass(6999);
    expect(times()).toEqual([0]);
    await clock.pass(1);
    await next;
    await fetch(URL_);
    expect(times()).toEqual([0, 7000, 7000]);
  });

  /** Four requests in flight to a server that grants four in 10 s, and a function that resolves one of them. */
  const four = async () => {
    const clock = fakeClock(START);
    const waiting: ((answer: Response) => void)[] = [];
    const fetch = createFetch({
      clock,
      jitter: 0,
      fetch: () => new Promise<Response>((answer) => waiting.push(answer)),
    });
    const answer = (i: number, remaining: number): void =>
      waiting[i]?.(
        new Response("", { headers: { RateLimit: `"a";r=${remaining};t=10`, "RateLimit-Policy": '"a";q=4;w=10' } }),
      );
    const all = many(4, () => fetch(URL_));
    await clock.pass(0);
    expect(waiting).toHaveLength(4);
    return { clock, waiting, fetch, answer, all };
  };

  test("requests in flight count as used: what is left is theirs", async () => {
    const { clock, waiting, fetch, answer, all } = await four();
    answer(0, 3);
    await all[0];
    const next = fetch(URL_);
    await clock.pass(9999);
    expect(waiting).toHaveLength(4);
    await clock.pass(1);
    expect(waiting).toHaveLength(5);
    for (const i of [1, 2, 3, 4]) answer(i, 3);
    await Promise.all([...all, next]);
  });

  test("at most 100 limits of a server are kept: a further name delays no request", async () => {
    const names = Array.from({ length: 100 }, (_, i) => `"${i}";r=900;t=60`).join(", ");
    const { clock, times, make } = serving(
      { fields: { RateLimit: names } },
      { fields: { RateLimit: '"new";r=0;t=60' } },
    );
    const fetch = make();
    for (let i = 0; i < 3; i++) await fetch(URL_);
    await clock.pass(0);
    expect(times()).toEqual([0, 0, 0]);
  });

  test("an older response does not override a newer one", async () => {
    const { clock, waiting, fetch, answer, all } = await four();
    for (const [request, remaining] of [
      [3, 0],
      [0, 3],
      [1, 2],
      [2, 1],
    ] as const) {
      answer(request, remaining);
      await clock.pass(0);
    }
    await Promise.all(all);
    const next = fetch(URL_);
    await clock.pass(9999);
    expect(waiting).toHaveLength(4);
    await clock.pass(1);
    expect(waiting).toHaveLength(5);
    answer(4, 3);
    await next;
  });

  test.each(DIALECTS.filter(({ reported }) => reported.limits.some(({ remaining }) => remaining === 0)))(
    "$api: the next request waits until the longest reset",
    async ({ fields, reported }) => {
      const { clock, times, make } = serving({ fields }, {});
      const fetch = make();
      await fetch(URL_);
      const next = fetch(URL_);
      const longest = Math.max(
        ...reported.limits.map(({ remaining, resetAfter = 0 }) => (remaining === 0 ? resetAfter : 0)),
      );
      await clock.pass(longest - 1);
      expect(times()).toHaveLength(1);
      await clock.pass(1);
      await next;
      expect(times()).toEqual([0, longest]);
    },
  );
});

describe("retries", () => {
  test("after a 429 with Retry-After this request and all later ones wait that long", async () => {
    const { clock, sent, retries, make } = serving({ status: 429, fields: { "Retry-After": "3" } }, {});
    const fetch = make();
    const first = fetch(`${URL_}/1`);
    await clock.pass(100);
    const second = fetch(`${URL_}/2`);
    await clock.pass(10 * SECOND);
    expect((await first).status + (await second).status).toBe(400);
    expect(sent.map(({ url, at }) => [url.at(-1), at])).toEqual([
      ["1", 0],
      ["1", 3000],
      ["2", 3000],
    ]);
    expect(retries).toEqual([{ url: new URL(`${URL_}/1`), status: 429, attempts: 1, wait: 3000 }]);
  });

  test("after a 503 without Retry-After waits grow until the retries are used up, then the response is returned", async () => {
    const { clock, times, make } = serving({ status: 503 });
    const fetch = make({ retries: 3 });
    const answered = fetch(URL_);
    await clock.pass(60 * SECOND);
    expect((await answered).status).toBe(503);
    expect(times()).toEqual([0, 1000, 3000, 7000]);
    expect(await (await answered).text()).toBe("answer 4");
  });

  test("after a 429 without Retry-After the wait ends at the last reset, and is never longer than `maxWait`", async () => {
    const answers = [{ status: 429, fields: { RateLimit: '"a";r=0;t=9, "b";r=0;t=3, "c";r=1;t=60' } }, {}];
    const { clock, retries, make } = serving(...answers);
    const answered = make()(URL_);
    await clock.pass(9 * SECOND);
    expect([(await answered).status, retries[0]?.wait]).toEqual([200, 9000]);
    const other = serving(...answers);
    expect((await other.make({ maxWait: 5000 })(URL_)).status).toBe(429);
  });

  test("the body of a response that is retried is cancelled, which frees its connection", async () => {
    const clock = fakeClock(START);
    const cancelled = vi.fn();
    const fetch = createFetch({
      clock,
      fetch: async () => new Response(new ReadableStream({ cancel: cancelled }), { status: 429 }),
      retries: 1,
    });
    const answered = fetch(URL_);
    await clock.pass(60 * SECOND);
    expect([(await answered).status, cancelled.mock.calls.length]).toEqual([429, 1]);
  });

  test("jitter never shortens a wait, and differs between clients", async () => {
    const waits = new Set<number>();
    for (let i = 0; i < 20; i++) {
      const { clock, times, make } = serving({ status: 429, fields: { "Retry-After": "10" } }, {});
      const answered = make({ jitter: 0.5 })(URL_);
      await clock.pass(20 * SECOND);
      await answered;
      waits.add(times()[1] as number);
    }
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(10_000);
    expect(Math.max(...waits)).toBeLessThanOrEqual(15_000);
    expect(waits.size).toBeGreaterThan(10);
  });

  test("retries a body that can be read again; never retries a stream", async () => {
    const denied = { status: 429, fields: { "Retry-After": "1" } };
    const body = () => new Blob(["hello"]).stream();
    const cases: [string | Request, RequestInit | undefined, number][] = [
      [URL_, { method: "PUT", body: "hello" }, 2],
      [URL_, { method: "PUT", body: new TextEncoder().encode("hello") }, 2],
      [URL_, { method: "PUT", body: new Blob(["hello"]) }, 2],
      [new Request(URL_, { method: "PUT", body: "hello" }), undefined, 2],
      [URL_, { method: "POST", body: "hello", headers: { "Idempotency-Key": "7" } }, 2],
      [URL_, { method: "POST", body: "hello" }, 1],
      [URL_, { method: "PUT", body: body(), duplex: "half" } as RequestInit, 1],
    ];
    for (const [input, init, times] of cases) {
      const { clock, sent, make } = serving(denied, {});
      let response: Response | undefined;
      const answered = make()(input, init).then((one) => {
        response = one;
      });
      // Hosts need different numbers of turns to read a Blob.
      while (response === undefined) await clock.pass(SECOND);
      await answered;
      expect(response.status).toBe(times === 2 ? 200 : 429);
      expect(sent.map((one) => one.body)).toEqual(Array.from({ length: times }, () => "hello"));
    }
  });

  test("`idempotent` overrides the method", async () => {
    const { clock, sent, make } = serving({ status: 429, fields: { "Retry-After": "1" } }, {});
    const answered = make({ idempotent: (url) => url.pathname === "/things" })(URL_, { method: "POST", body: "a" });
    await clock.pass(5 * SECOND);
    expect([(await answered).status, sent.length]).toEqual([200, 2]);
  });

  test("GitHub's 403 is a denial only if nothing is left; Stripe's Stripe-Should-Retry is followed", async () => {
    const reset = String(START / 1000 + 30);
    const cases: [Answer, number][] = [
      [{ status: 403, fields: { "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset } }, 2],
      [{ status: 403, fields: { "X-RateLimit-Remaining": "50", "X-RateLimit-Reset": reset } }, 1],
      [{ status: 429, fields: { "Stripe-Should-Retry": "false", "Retry-After": "1" } }, 1],
      [{ status: 500, fields: { "Retry-After": "1" } }, 1],
    ];
    for (const [answer, times] of cases) {
      const { clock, sent, make } = serving(answer, {});
      const answered = make()(URL_);
      await clock.pass(60 * SECOND);
      await answered;
      expect(sent).toHaveLength(times);
    }
  });

  test("returns the denial immediately beyond `maxWait`, beyond `deadline`, and with `retries: 0`", async () => {
    for (const options of [{ maxWait: 5000 }, { deadline: 5000 }, { retries: 0 }]) {
      const { clock, sent, make } = serving({ status: 429, fields: { "Retry-After": "6" } }, {});
      const response = await make(options)(URL_);
      expect([response.status, await response.text(), sent.length, clock.now() - START]).toEqual([
        429,
        "answer 1",
        1,
        0,
      ]);
    }
  });

  test("an abort while waiting for a retry ends the wait", async () => {
    const { clock, sent, make } = serving({ status: 429, fields: { "Retry-After": "6" } });
    const gone = new AbortController();
    const fetch = make();
    const answered = fetch(URL_, { signal: gone.signal });
    await clock.pass(1000);
    gone.abort(new Error("closed"));
    await expect(answered).rejects.toThrow("closed");
    expect([sent.length, fetch.queued, clock.timers]).toEqual([1, 0, 0]);
  });
});

test("concurrent identical GETs share one request, each with its own body", async () => {
  const { clock, sent, make } = serving({});
  const fetch = make({ share: true });
  const all = [
    fetch(URL_),
    fetch(new URL(URL_)),
    fetch(URL_, { headers: { Accept: "a" } }),
    fetch(URL_, { method: "POST" }),
  ];
  await clock.pass(0);
  const texts = await Promise.all((await Promise.all(all)).map((response) => response.text()));
  expect([texts[0] === texts[1], sent.length, new Set(texts).size]).toEqual([true, 3, 3]);
});

test("drain refuses new requests to every origin; drain and idle resolve once all have run", async () => {
  const { clock, make } = serving({});
  const fetch = make({ limit: { kind: "token bucket", rate: 1, period: SECOND } });
  const all = many(3, () => fetch(URL_));
  const drained = fetch.drain();
  await expect(fetch(URL_)).rejects.toMatchObject({ reason: "closed" });
  await expect(fetch("https://other.example.com")).rejects.toMatchObject({ reason: "closed" });
  expect([fetch.queued, fetch.running]).toEqual([2, 0]);
  await clock.pass(5 * SECOND);
  await drained;
  await Promise.all([...all, fetch.idle()]);
});

test.each([
  [{ retries: -1 }, "`retries` must be an integer from 0; got -1"],
  [{ jitter: 2 }, "`jitter` must be a number from 0 to 1; got 2"],
  [{ slowBelow: "1" }, '`slowBelow` must be a number from 0 to 1; got "1"'],
  [{ key: "account" }, '`key` must be "origin", or a function; got "account"'],
  [{ maxWait: -1 }, "`maxWait` must be a number of ms from 0"],
  [{ limit: { kind: "token bucket", rate: 0, period: 1 } }, "`rate` must be"],
  [{ fetch: 1 }, "`fetch` must be a function; got 1"],
  [{ timeout: 1 }, "`timeout` must be absent"],
])("throws immediately for an invalid option: %j", (options, message) => {
  expect(() => createFetch(options as never)).toThrow(message);
});
