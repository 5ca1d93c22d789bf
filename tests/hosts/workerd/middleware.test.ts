/** The middleware for fetch handlers and for Hono, inside workerd. */
import { cpSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { project } from "../project.ts";
import { inRuntime } from "../runtimes.ts";
import { dev } from "./server.ts";

const hono = fileURLToPath(new URL("../../../node_modules/hono", import.meta.url));

await inRuntime("workerd", (wrangler) => {
  test.each(["fetch", "hono"])(
    "%s: two per hour reach the handler, with rate-limit headers; the third response has Retry-After",
    {
      timeout: 120_000,
    },
    async (route) => {
      const user = project("workerd");
      cpSync(hono, join(user.folder, "node_modules/hono"), { recursive: true });
      user.write("wrangler.jsonc", '{ "name": "m", "main": "middleware.js", "compatibility_date": "2026-04-01" }');
      const worker = await dev(wrangler, user.folder);
      try {
        const answers: Response[] = [];
        for (let i = 0; i < 3; i++) {
          const headers = { "cf-connecting-ip": "192.0.2.7" };
          answers.push(await fetch(`${worker.origin}/${route}`, { headers }));
        }
        expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
        expect(await answers[0]?.text()).toBe(route);
        expect(answers.map(({ headers }) => headers.get("ratelimit")?.split(";")[1])).toEqual(["r=1", "r=0", "r=0"]);
        expect(Number(answers[2]?.headers.get("retry-after"))).toBeGreaterThan(0);
        expect(answers[2]?.headers.get("content-type")).toBe("application/problem+json");
      } finally {
        await worker.running.stop();
        user.remove();
      }
    },
  );
});
