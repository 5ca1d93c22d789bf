/** Server actions of Next.js; what all middleware share is tested by their suite. */
import { expect, test } from "vitest";
import { defineLimits, HOUR } from "../../src/index.ts";
import { rateLimit, rateLimitAction } from "../../src/middleware/next.ts";

test("`settle` gets what an action returned, and can refund those that report no error in it", async () => {
  const limits = defineLimits({ login: { kind: "token bucket", rate: 5, period: HOUR } }, { now: () => 0 });
  const settle = ({ result }: { result?: unknown }) => (Object(result).error === undefined ? 0 : undefined);
  const login = rateLimitAction(limits, { name: "login", key: "ada", settle }, async (password: string) =>
    password === "right" ? { welcome: "ada" } : { error: "wrong password" },
  );
  const left = () => limits.getValue("login", { key: "ada" }).value;
  expect(await login("wrong")).toEqual({ error: "wrong password" });
  expect(left()).toBe(4);
  expect(await login("right")).toEqual({ welcome: "ada" });
  expect(left()).toBe(4);
});

test("a proxy may return null or nothing, which lets the request continue", async () => {
  const limits = defineLimits({ all: { kind: "token bucket", rate: 1, period: HOUR } }, { now: () => 0 });
  for (const nothing of [null, undefined]) {
    const proxy = rateLimit(limits, { name: "all", key: `${nothing}` }, async (_request, _event: object) => nothing);
    expect(await proxy(new Request("https://app.example/"), {})).toBeUndefined();
    expect((await proxy(new Request("https://app.example/"), {}))?.status).toBe(429);
  }
  const notOne: unknown = "a function";
  const made = () => rateLimit(limits, { name: "all", key: "k" }, notOne as () => Response);
  expect(made).toThrow("`handler` must be");
});
