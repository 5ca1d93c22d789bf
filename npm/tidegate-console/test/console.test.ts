import { type AsyncStore, defineLimits, memory } from "tidegate";
import { describe, expect, test, vi } from "vitest";
import { type ConsoleAction, createConsole } from "../src/index.ts";
import type { KeyState } from "../src/wire.ts";
import { firstEvents, get, make, post, read, SAME, START, URL_ } from "./requests.ts";

describe("createConsole", () => {
  const limiter = defineLimits({ api: { kind: "fixed window", rate: 1, period: "1s" } });
  const authorize = (): boolean => true;
  test.each([
    [undefined, /^`options` must be an object with authorize; got undefined/],
    [{}, /^`authorize` must be a function \(request\) => boolean .*; got undefined/],
    [{ authorize: true }, /^`authorize` must be .*; got true/],
    [
      { authorize, authorise: 1 },
      /^`authorise` must be absent: createConsole has authorize, onAction, now, keys, shadow; /,
    ],
    [{ authorize, onAction: 1 }, /^`onAction` must be a function/],
    [{ authorize, keys: ["api"] }, /^`keys` must be limits and keys, such as keysOfPolicies\(policies\)/],
    [{ authorize, shadow: true }, /^`shadow` must be what definePolicies returns; got true/],
  ])("refuses the options %j", (options, message) => {
    expect(() => createConsole(limiter, options as never)).toThrow(
      expect.objectContaining({ code: "TIDEGATE_INPUT", message: expect.stringMatching(message) }),
    );
  });

  test("refuses what is no limiter", () => {
    expect(() => createConsole({} as never, { authorize: () => true })).toThrow(/`limiter` must be what defineLimits/);
  });
});

describe("authorization", () => {
  const requests = [
    ["the page", () => get()],
    ["its headers", () => new Request(URL_, { method: "HEAD" })],
    ["the stream", () => get(SAME, "?stream")],
    ["an operation", () => post(read)],
  ] as const;

  test.each(requests)("%s is refused where authorize returns false, and only true lets it in", async (_, request) => {
    const actions: ConsoleAction[] = [];
    for (const answer of [false, undefined, "yes", 1, {}]) {
      const { fetch } = make({
        authorize: async () => answer as boolean,
        onAction: (action) => void actions.push(action),
      });
      const response = await fetch(request());
      expect(response.status).toBe(403);
      expect(await response.text()).toBe("You may not use this console.\n");
    }
    expect(actions).toEqual([]);
  });

  test.each(requests)("%s is answered with the response that authorize returns", async (_, request) => {
    const headers = { "www-authenticate": "Basic" };
    const { fetch } = make({ authorize: () => new Response("Sign in.", { status: 401, headers }) });
    const response = await fetch(request());
    expect([response.status, response.headers.get("www-authenticate")]).toEqual([401, "Basic"]);
  });

  test.each(requests)("%s is answered with 500 and no details where authorize throws", async (_, request) => {
    const logged = vi.spyOn(console, "error").mockImplementation(() => {});
    const error = new Error("password=hunter2");
    const fails = (): never => {
      throw error;
    };
    for (const authorize of [() => Promise.reject(error), fails]) {
      const response = await make({ authorize }).fetch(request());
      expect(response.status).toBe(500);
      expect(await response.text()).not.toContain("hunter2");
    }
    expect(logged).toHaveBeenCalledWith("tidegate-console: authorize failed", error);
  });

  test("receives the request", async () => {
    const seen: (string | null)[] = [];
    const { fetch } = make({ authorize: ({ headers }) => seen.push(headers.get("authorization")) > 0 });
    await fetch(get({ authorization: "Bearer a" }));
    expect(seen).toEqual(["Bearer a"]);
  });
});

describe("the page", () => {
  test("may load nothing but itself, may not be framed, and is not cached", async () => {
    const response = await make().fetch(get());
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(response.headers.get("cache-control")).toBe("no-store, no-transform");
    expect(response.headers.get("x-frame-options")).toBe("DENY");
    const policy = new Map(
      (response.headers.get("content-security-policy") ?? "")
        .split("; ")
        .map((part) => part.split(/ (.*)/) as [string, string]),
    );
    expect(Object.fromEntries(policy)).toEqual({
      "default-src": "'none'",
      "script-src": expect.stringMatching(/^'sha256-[\w+/]{43}='$/),
      "style-src": expect.stringMatching(/^'sha256-[\w+/]{43}='$/),
      "connect-src": "'self'",
      "img-src": "data:",
      "base-uri": "'none'",
      "form-action": "'none'",
      "frame-ancestors": "'none'",
      "require-trusted-types-for": "'script'",
      "trusted-types": "'none'",
    });
    const html = await response.text();
    // Beside the bundled libraries' own strings, nothing refers to another file.
    expect(html.replace(/<script[\s\S]*<\/script>|<style[\s\S]*<\/style>/g, "")).not.toMatch(
      /https?:|src=|href="(?!data:,")/,
    );
    for (const [kind, tag] of [
      ["script-src", "script"],
      ["style-src", "style"],
    ] as const) {
      const inner = new RegExp(`<${tag}[^>]*>([\\s\\S]*?)</${tag}>`).exec(html)?.[1];
      const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(inner));
      expect(policy.get(kind)).toBe(`'sha256-${Buffer.from(digest).toString("base64")}'`);
    }
  });

  test("has nothing of the request or the limits in it, at any path", async () => {
    const { fetch, limits } = make();
    for (let i = 0; i < 9; i++) limits.limit("api", { key: "<img src=x onerror=alert(1)>" });
    const pages = await Promise.all(
      ["/", "/a/b/", "/limits?<script>alert(1)</script>"].map(async (path) =>
        (await fetch(new Request(`https://app.example${path}`))).text(),
      ),
    );
    expect(new Set(pages).size).toBe(1);
    expect(pages[0]).not.toContain("onerror=alert(1)");
  });

  test("answers HEAD without a body, and refuses other methods", async () => {
    const { fetch } = make();
    const head = await fetch(new Request(URL_, { method: "HEAD" }));
    expect([head.status, await head.text()]).toEqual([200, ""]);
    const stream = await fetch(new Request(`${URL_}?stream`, { method: "HEAD", headers: SAME }));
    expect([stream.status, stream.headers.get("content-type"), stream.body]).toEqual([200, "text/event-stream", null]);
    const put = await fetch(new Request(URL_, { method: "PUT" }));
    expect([put.status, put.headers.get("allow")]).toEqual([405, "GET, HEAD, POST"]);
  });
});

describe("an operation", () => {
  const stateOf = async (response: Response): Promise<KeyState> => {
    expect(response.status).toBe(200);
    return (await response.json()) as KeyState;
  };

  test("reads a key: its value now, and when a request is granted", async () => {
    const { fetch, limits, clock } = make();
    limits.limit("api", { key: "ann", count: 4 });
    clock.now += 500;
    const state = await stateOf(await fetch(post({ ...read, count: 3 })));
    expect(state).toEqual({
      now: START + 500,
      value: 1.5,
      capacity: 5,
      policy: "token bucket: 1 per 1 s, capacity 5",
      resetAt: START + 4000,
      next: { count: 3, ok: false, retryAt: START + 2000 },
      degraded: false,
    });
    expect((await stateOf(await fetch(post({ ...read, count: 6 })))).next).toEqual({
      count: 6,
      ok: false,
      retryAt: null,
    });
    expect((await stateOf(await fetch(post(read)))).next).toEqual({ count: 1, ok: true, retryAt: null });
  });

  test("resets, gives and charges, reports each to onAction before, and counts none of its own calls", async () => {
    const actions: unknown[] = [];
    const { fetch, limits } = make({
      onAction: ({ request, ...action }) => void actions.push([action, request.headers.get("sec-fetch-site")]),
    });
    const value = async (operation: string, count: number) =>
      (await stateOf(await fetch(post({ operation, name: "api", key: "ann", count })))).value;
    expect(await value("charge", 7)).toBe(-2);
    expect(await value("give", 3)).toBe(1);
    expect(await value("reset", 1)).toBe(5);
    expect(limits.check("api", { key: "ann", count: 5 }).ok).toBe(true);
    expect(actions).toEqual([
      [{ operation: "charge", name: "api", key: "ann", count: 7 }, "same-origin"],
      [{ operation: "give", name: "api", key: "ann", count: 3 }, "same-origin"],
      [{ operation: "reset", name: "api", key: "ann", count: 1 }, "same-origin"],
    ]);
    const figures = await firstEvents(await fetch(get(SAME, "?stream")));
    expect(figures).not.toMatch(/"(granted|denied)":\[[^\]]*[1-9]/);
  });

  test("blocks for a time", async () => {
    const actions: unknown[] = [];
    const { fetch, limits } = make({ onAction: ({ request: _, ...action }) => actions.push(action) });
    const { next, now } = await stateOf(await fetch(post({ ...read, operation: "block", for: "15m" })));
    expect(next).toEqual({ count: 1, ok: false, retryAt: now + 900_000 });
    expect(limits.check("api", { key: "ann" }).ok).toBe(false);
    expect(actions).toEqual([{ operation: "block", name: "api", key: "ann", count: 1, for: "15m" }]);
  });

  test.each([undefined, "soon", 0, -1])("a block for %j is refused by the limiter", async (length) => {
    const response = await make().fetch(post({ ...read, operation: "block", for: length }));
    expect([response.status, (await response.json()).error]).toEqual([400, expect.stringMatching(/^`for` must be /)]);
  });

  test("is not made where onAction throws", async () => {
    vi.spyOn(console, "error").mockImplementation(() => {});
    const { fetch, limits } = make({ onAction: () => Promise.reject(new Error("no audit log")) });
    const response = await fetch(post({ ...read, operation: "charge", count: 2 }));
    expect([response.status, await response.json()]).toEqual([
      500,
      { error: "The operation failed. The server's log has the reason." },
    ]);
    expect(limits.check("api", { key: "ann", count: 5 }).ok).toBe(true);
  });

  const refusals: [string, Record<string, string>, string?][] = [
    ["another site", { "sec-fetch-site": "cross-site", origin: "https://app.example" }],
    ["another subdomain", { "sec-fetch-site": "same-site" }],
    ["a typed address", { "sec-fetch-site": "none" }],
    ["another origin, of an old browser", { origin: "https://evil.example" }],
    ["a sandboxed frame", { origin: "null" }],
    ["another port", { origin: "https://app.example:444" }],
    ["no browser", {}],
  ];
  test.each(refusals)("is refused from %s", async (_, headers) => {
    const { fetch, limits } = make();
    const response = await fetch(post({ ...read, operation: "charge", count: 2 }, headers));
    expect([response.status, await response.text()]).toEqual([403, "Only the console's own page may do this.\n"]);
    expect(limits.check("api", { key: "ann", count: 5 }).ok).toBe(true);
  });

  const acceptances: [string, Record<string, string>, string?][] = [
    ["the same origin", SAME],
    [
      "the same host, where the browser sends no Sec-Fetch-Site",
      { origin: "http://10.0.0.1:8080" },
      "http://10.0.0.1:8080/l",
    ],
    [
      "the same host, behind a proxy that ends TLS",
      { origin: "https://app.example", host: "app.example" },
      "http://internal:80/l",
    ],
  ];
  test.each(acceptances)("is accepted from %s", async (_, headers, url) => {
    expect((await make().fetch(post(read, headers, url))).status).toBe(200);
  });

  test.each([
    ["{", "the body must be a JSON object"],
    ["null", "the body must be a JSON object"],
    [{ ...read, operation: "drop" }, "`operation` must be one of read, reset, give, charge, block, shadow"],
    [{ ...read, operation: "toString" }, "`operation` must be one of read, reset, give, charge, block, shadow"],
    [{ ...read, now: 1 }, 'the body has no field "now"'],
    [{ operation: "read", key: "ann" }, "`name` must be a string"],
    [{ ...read, name: "apo" }, /^`name` must be one of the limits defined: "api"; got "apo"/],
    [{ ...read, name: "__proto__" }, /^`name` must be one of the limits defined/],
    [{ ...read, key: "" }, /^`key` must be/],
    [{ ...read, key: 7 }, "`key` must be a string, or absent"],
    [{ ...read, key: null }, "`key` must be a string, or absent"],
    [{ ...read, count: -1 }, /^`count` must be/],
    [{ ...read, operation: "charge", count: "1" }, "`count` must be a number"],
    [{ ...read, operation: "block", for: ["15m"] }, "`for` must be a number of ms, or a text such as 15m"],
  ])("refuses %j", async (body, message) => {
    const actions: unknown[] = [];
    const response = await make({ onAction: (action) => void actions.push(action) }).fetch(post(body));
    expect(response.status).toBe(400);
    const expected = typeof message === "string" ? message : expect.stringMatching(message);
    expect(await response.json()).toEqual({ error: expected });
    expect(actions).toEqual([]);
  });

  test("reports a store that fails with 503", async () => {
    vi.spyOn(console, "error").mockImplementation(() => {});
    const failing = Object.assign(Object.create(memory()), { sync: false, name: "broken" }) as AsyncStore;
    for (const method of ["decide", "getValue", "reset"] as const) {
      Object.assign(failing, { [method]: () => Promise.reject(new Error("ECONNREFUSED")) });
    }
    const limiter = defineLimits(
      { api: { kind: "fixed window", rate: 1, period: "1s" } },
      { store: failing, log: false },
    );
    const { fetch } = createConsole(limiter, { authorize: () => true });
    const response = await fetch(post(read));
    expect(response.status).toBe(503);
    expect(((await response.json()) as { error: string }).error).toMatch(/./);
  });
});

describe("the stream", () => {
  test("has the counts, then each denial once, with an id to resume at", async () => {
    vi.useFakeTimers();
    const { fetch, limits, clock } = make();
    limits.limit("api", { key: "ann\u2028\n\ndata: x", count: 9 });
    const response = await fetch(get(SAME, "?stream"));
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const next = async () => new TextDecoder().decode((await reader.read()).value);
    const first = await next();
    const fields = first.split("\n").map((line) => line.split(": ")[0]);
    expect(fields).toEqual(["retry", "", "event", "data", "", "id", "event", "data", "", ""]);
    const [figures, denials] = [...first.matchAll(/^data: ([^\n]*)$/gm)].map(([, data]) => JSON.parse(data as string));
    expect(figures).toMatchObject({ now: START, since: START, defined: ["api"] });
    expect(denials).toMatchObject({ skipped: 0, denials: [{ id: 1, key: "ann\u2028\n\ndata: x" }] });
    limits.limit("api", { key: "bob", count: 9 });
    vi.advanceTimersByTime(250);
    const second = await next();
    expect(second).toMatch(/^id: \w+-2\nevent: denials\ndata: .*"bob".*\n\n$/);
    expect(second).not.toContain("ann");
    clock.now += 1000;
    vi.advanceTimersByTime(750);
    const [, data = "{}"] = /^event: figures\ndata: ([^\n]*)$/m.exec(await next()) ?? [];
    // The last second again, which was not over, and the new one.
    expect(JSON.parse(data)).toMatchObject({ from: START / 1000, limits: [{ denied: [2, 0] }] });
    await reader.cancel();
    const id = /id: (\S+)/.exec(second)?.[1] as string;
    limits.limit("api", { key: "cid", count: 9 });
    const resumed = await firstEvents(await fetch(get({ ...SAME, "last-event-id": id }, "?stream")));
    expect(resumed.match(/"id":\d+/g)).toEqual(['"id":3']);
    for (const other of ["another-2", "", "x", `${id}9`]) {
      const all = await firstEvents(await fetch(get({ ...SAME, "last-event-id": other }, "?stream")));
      expect(all.match(/"id":\d+/g)).toEqual(['"id":1', '"id":2', '"id":3']);
    }
  });

  test("is refused to other sites", async () => {
    const { fetch } = make();
    for (const headers of [{ "sec-fetch-site": "cross-site" }, { origin: "https://evil.example" }]) {
      expect((await fetch(get(headers, "?stream"))).status).toBe(403);
    }
  });

  test("queues nothing for a browser that does not read", async () => {
    vi.useFakeTimers();
    const { fetch, limits } = make();
    const { body } = await fetch(get(SAME, "?stream"));
    for (let i = 0; i < 40; i++) {
      for (let n = 0; n < 100; n++) limits.limit("api", { key: "ann", count: 9 });
      vi.advanceTimersByTime(250);
    }
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    vi.advanceTimersByTime(250);
    const text = new TextDecoder().decode((await reader.read()).value);
    expect(text.match(/"id":\d+/g)?.length).toBe(50);
    expect(text).toContain('"skipped":3950');
    await reader.cancel();
  });

  test("ends after 30 s, so that the browser is authorized again", async () => {
    vi.useFakeTimers();
    const { body } = await make().fetch(get(SAME, "?stream"));
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    let isDone = false;
    const reading = (async () => {
      while (!(await reader.read()).done);
      isDone = true;
    })();
    await vi.advanceTimersByTimeAsync(29_000);
    expect(isDone).toBe(false);
    await vi.advanceTimersByTimeAsync(1500);
    expect(isDone).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
    await reading;
  });

  test("ends where the console is closed, and leaves no timer", async () => {
    vi.useFakeTimers();
    const { fetch, close } = make();
    const open = async () => ((await fetch(get(SAME, "?stream"))).body as ReadableStream<Uint8Array>).getReader();
    const readers = [await open(), await open()];
    for (const reader of readers) await reader.read();
    close();
    expect(await Promise.all(readers.map((reader) => Promise.race([reader.read(), "open"])))).toEqual([
      { done: true, value: undefined },
      { done: true, value: undefined },
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("is open at most 20 times; one that is closed makes room", async () => {
    vi.useFakeTimers();
    const { fetch } = make();
    const open = () => fetch(get(SAME, "?stream"));
    const responses = await Promise.all(Array.from({ length: 20 }, open));
    const refused = await open();
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
    await responses[0]?.body?.cancel();
    expect((await open()).status).toBe(200);
    vi.clearAllTimers();
  });
});
