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
    [{ authorize, "redis://a:hunter2@b": 1 }, /^`redis:\/\/…` must be absent/],
    [{ authorize, [`\u001b[2J${"x".repeat(200)}`]: 1 }, /^`\?\[2Jx{76}…` must be absent: createConsole has /],
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

  test("authorize receives the request", async () => {
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

test("no response is cached, framed, sniffed or read by another origin", async () => {
  const { fetch } = make();
  const requests = [
    get(),
    get(SAME, "?stream"),
    post(read),
    post("{"),
    post(read, {}),
    new Request(URL_, { method: "PUT" }),
  ];
  const responses = await Promise.all(requests.map(fetch));
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 400, 403, 405]);
  for (const { headers, body } of responses) {
    expect(Object.fromEntries(headers)).toMatchObject({
      "cache-control": "no-store, no-transform",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
    });
    await body?.cancel();
  }
  const [, stream, state] = responses;
  // Of a proxy that collects responses, such as nginx.
  expect(stream?.headers.get("x-accel-buffering")).toBe("no");
  expect(state?.headers.get("content-type")).toBe("application/json");
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
    // When it is full if nothing is taken, also where the request is granted.
    const granted = await stateOf(await fetch(post(read)));
    expect(granted).toMatchObject({ resetAt: START + 4000, next: { count: 1, ok: true, retryAt: null } });
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

  test("blocks a limit without keys, for a time in ms", async () => {
    const { fetch, limits } = make();
    const body = { operation: "block", name: "api", for: 900_000 };
    const { next, now } = await stateOf(await fetch(post(body)));
    expect(next).toEqual({ count: 1, ok: false, retryAt: now + 900_000 });
    expect([limits.check("api").ok, limits.check("api", { key: "ann" }).ok]).toEqual([false, true]);
  });

  test("blocks a key for a time as text, and reports it to onAction", async () => {
    const actions: unknown[] = [];
    const { fetch, limits } = make({ onAction: ({ request: _, ...action }) => actions.push(action) });
    const { next, now } = await stateOf(await fetch(post({ ...read, operation: "block", for: "15m" })));
    expect(next).toEqual({ count: 1, ok: false, retryAt: now + 900_000 });
    expect(limits.check("api", { key: "ann" }).ok).toBe(false);
    expect(actions).toEqual([{ operation: "block", name: "api", key: "ann", count: 1, for: "15m" }]);
  });

  test.each([
    ["for", { operation: "block" }],
    ["for", { operation: "block", for: "soon" }],
    ["for", { operation: "block", for: 0 }],
    ["for", { operation: "block", for: -1 }],
    ["count", { operation: "charge", count: -1 }],
    ["count", { operation: "give", count: 2 ** 41 }],
    ["name", { operation: "reset", name: "apo" }],
    ["key", { operation: "block", for: "15m", key: "" }],
  ])("what the limiter refuses by its %s is not reported to onAction: %j", async (field, body) => {
    const actions: unknown[] = [];
    const response = await make({ onAction: (action) => void actions.push(action) }).fetch(post({ ...read, ...body }));
    expect([response.status, (await response.json()).error.split(" must be ")[0]]).toEqual([400, `\`${field}\``]);
    expect(actions).toEqual([]);
  });

  test("takes nothing where onAction throws, and responds with 500 without details", async () => {
    const logged = vi.spyOn(console, "error").mockImplementation(() => {});
    const error = new Error("no audit log");
    const { fetch, limits } = make({ onAction: () => Promise.reject(error) });
    const response = await fetch(post({ ...read, operation: "charge", count: 2 }));
    expect([response.status, await response.json()]).toEqual([
      500,
      { error: "The operation failed. The server's log has the reason." },
    ]);
    expect(logged).toHaveBeenCalledWith("tidegate-console: an operation failed", error);
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
    [{ ...read, operation: "block", for: ["15m"] }, "`for` must be a number of ms, or a string such as 15m"],
  ])("refuses %j", async (body, message) => {
    const actions: unknown[] = [];
    const response = await make({ onAction: (action) => void actions.push(action) }).fetch(post(body));
    expect(response.status).toBe(400);
    const expected = typeof message === "string" ? message : expect.stringMatching(message);
    expect(await response.json()).toEqual({ error: expected });
    expect(actions).toEqual([]);
  });

  /** A console on a store on which these calls fail, and reads work. */
  const failingIn = (fails: (call: Parameters<AsyncStore["decide"]>[0]) => boolean) => {
    const whole = memory();
    const half = Object.assign(Object.create(whole), { sync: false, name: "half" }) as AsyncStore;
    const decide: AsyncStore["decide"] = async (call, now) =>
      fails(call) ? Promise.reject(new Error("ECONNRESET")) : whole.decide(call, now);
    Object.assign(half, { decide, reset: async () => {}, getValue: async () => ({ value: 1, ts: START }) });
    const configs = { api: { kind: "fixed window", rate: 1, period: "1s" } } as const;
    return createConsole(defineLimits(configs, { store: half, log: false }), { authorize: () => true });
  };

  test.each([0, 1])("marks a state of which the check of %i tokens was decided without the store", async (count) => {
    const { fetch } = failingIn((call) => call.count === count);
    expect((await stateOf(await fetch(post(read)))).degraded).toBe(true);
  });

  test("a reset is made although its key cannot be checked, as of a corrupt state", async () => {
    const { fetch } = failingIn(({ op }) => op === "check");
    expect((await fetch(post({ ...read, operation: "reset" }))).status).toBe(200);
  });

  test.each(["charge", "block"] as const)(
    "a %s while the store fails changes no limit in memory that decides instead, and is not reported",
    async (operation) => {
      const down = Object.assign(memory(), { sync: false, name: "down" }) as unknown as AsyncStore;
      Object.assign(down, { decide: () => Promise.reject(new Error("ECONNRESET")) });
      const configs = { api: { kind: "fixed window", rate: 2, period: "1h", onStoreError: { local: 0.5 } } } as const;
      const actions: unknown[] = [];
      const limiter = defineLimits(configs, { store: down, log: false });
      const onAction = (action: unknown) => void actions.push(action);
      const { fetch } = createConsole(limiter, { authorize: () => true, onAction });
      const response = await fetch(post({ ...read, operation, for: "15m" }));
      expect([response.status, actions.length]).toEqual([503, 0]);
      expect(await limiter.limit("api", { key: "ann" })).toMatchObject({ ok: true, degraded: true });
    },
  );

  test.each(["give", "charge", "block"] as const)(
    "a %s that did not reach the store is no success",
    async (operation) => {
      vi.spyOn(console, "error").mockImplementation(() => {});
      const { fetch } = failingIn((call) => call.op === operation);
      const response = await fetch(post({ ...read, operation, for: "15m" }));
      const error = `half: ${operation} of "api:ann" failed: ECONNRESET`;
      expect([response.status, await response.json()]).toEqual([503, { error }]);
    },
  );

  test("reports a store that fails with 503, which only the limiter logs: a page asks again each second", async () => {
    const logged = vi.spyOn(console, "error").mockImplementation(() => {});
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
    expect(logged).not.toHaveBeenCalled();
  });
});
