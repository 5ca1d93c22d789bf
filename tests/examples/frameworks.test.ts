import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Example, example } from "./example.ts";
import { root } from "./process.ts";

/** Three concurrent requests: their responses, the granted ones first. */
async function thrice(url: string, headers: Record<string, string> = {}): Promise<Response[]> {
  const answers = await Promise.all([1, 2, 3].map(() => fetch(url, { headers })));
  return answers.sort((a, b) => a.status - b.status);
}

async function denied(answer: Response | undefined): Promise<void> {
  expect(answer?.headers.get("content-type")).toContain("application/problem+json");
  expect(answer?.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
  expect(await answer?.json()).toMatchObject({ status: 429 });
}

describe.each(["express/server.ts", "fastify/server.ts", "hono/server.ts", "koa/server.ts", "nest/main.ts"])(
  "examples/%s",
  (name) => {
    let server: Example;
    beforeAll(async () => {
      server = await example(name);
    });
    afterAll(() => server?.stop());

    test("limits each client, and one route for all clients together", async () => {
      const search = await fetch(`${server.url}/search`);
      expect([search.status, await search.json()]).toEqual([200, { found: [] }]);
      expect(search.headers.get("ratelimit")).toContain('"api";r=2;');
      expect(search.headers.get("ratelimit")).toContain('"search";r=45;');
      const answers = await thrice(server.url);
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
      const bodies = await Promise.all(answers.slice(0, 2).map((answer) => answer.json()));
      expect(bodies).toEqual(
        expect.arrayContaining([
          { message: "hello", remaining: 1 },
          { message: "hello", remaining: 0 },
        ]),
      );
      await denied(answers[2]);
    });
  },
);

describe("examples/fetch-handler", () => {
  let server: Example;
  beforeAll(async () => {
    server = await example("fetch-handler/server.ts");
  });
  afterAll(() => server?.stop());

  test("limits each user, and the handler reads the decision", async () => {
    const first = await fetch(server.url, { headers: { authorization: "made up" } });
    expect([first.status, await first.json()]).toEqual([200, { message: "hello", remaining: 2 }]);
    const answers = await thrice(server.url, { authorization: "made up, too" });
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
    await denied(answers[2]);
    expect((await fetch(server.url, { headers: { authorization: "Bearer session-of-ada" } })).status).toBe(200);
    expect((await fetch(server.url, { method: "POST" })).status).toBe(405);
  });
});

test("the examples in TypeScript type-check, strictly", async () => {
  const args = ["node_modules/typescript-7/bin/tsc", "--project", "examples/tsconfig.json"];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root }).catch((error) => error);
  expect(stdout).toBe("");
});

test("examples/llm-budget sets an estimate aside, gives back what was not used, waits, and keeps to the day's", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["examples/llm-budget/budget.mjs"], { cwd: root });
  const when = "(at once|after its turn had come)"; // which one depends on the machine's speed
  const lines = [
    `700 tokens, ${when}; left for the day: 5300`,
    `2000 tokens, ${when}; left for the day: 3300`,
    `1000 tokens, ${when}; left for the day: 2300`,
    "denied by tokensPerDay; left for the day: 2300",
  ];
  expect(stdout).toMatch(new RegExp(`^${lines.join("\n")}\n$`));
});
