/** The middleware for fetch handlers and for Hono, inside workerd. */
import { cpSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { project } from "../project.ts";
import { inRuntime } from "../runtimes.ts";
import { bundle, start } from "./server.ts";

const hono = fileURLToPath(new URL("../../../node_modules/hono", import.meta.url));

const CONFIGURATION = {
  name: "m",
  main: "middleware.js",
  compatibility_date: "2026-04-01",
  durable_objects: { bindings: [{ name: "ROOM", class_name: "Room" }] },
  migrations: [{ tag: "v1", new_sqlite_classes: ["Room"] }],
};

/** The status of a WebSocket's handshake. */
const handshake = (url: string, more: Record<string, string>): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const headers = { ...more, connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" };
    const key = { "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" };
    get(url, { headers: { ...headers, ...key }, agent: false }, ({ statusCode }) => resolve(statusCode))
      .on("upgrade", ({ statusCode }, socket) => {
        socket.destroy();
        resolve(statusCode);
      })
      .on("error", reject);
  });

await inRuntime("workerd", async (wrangler) => {
  const user = project("workerd");
  cpSync(hono, join(user.folder, "node_modules/hono"), { recursive: true });
  user.write("wrangler.jsonc", JSON.stringify(CONFIGURATION));
  bundle(wrangler, user.folder);
  const worker = await start(user.folder);
  afterAll(() => worker.stop());

  test.each(["fetch", "hono"])(
    "%s: two per hour reach the handler, with rate-limit headers; the third response has Retry-After; WebSockets too",
    async (route) => {
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
      const handshakes: (number | undefined)[] = [];
      for (let i = 0; i < 3; i++) {
        handshakes.push(await handshake(`${worker.origin}/${route}`, { "cf-connecting-ip": "192.0.2.8" }));
      }
      expect(handshakes).toEqual([101, 101, 429]);
    },
  );
});
