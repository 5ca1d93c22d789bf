/** The small examples, each in its runtime, in a project with only the packed tarball. */
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { install, type Installed } from "../packaging/installed.ts";
import { launch } from "../support/chromium.ts";
import { freePort } from "../support/ports.ts";
import { start } from "../support/processes.ts";
import { inRuntime } from "./runtimes.ts";
import { QUIET } from "./workerd/server.ts";

const timeout = 300_000;
const users: Installed[] = [];
afterAll(() => {
  for (const user of users) user.remove();
});

/** The example's files where a user would have them. */
function copied(name: string): string {
  const user = install();
  users.push(user);
  cpSync(fileURLToPath(new URL(`../../examples/${name}`, import.meta.url)), user.folder, { recursive: true });
  return user.folder;
}

/** Starts an example, sends so many requests, and returns each response's status and fields. */
async function request(times: number, command: string, args: string[], cwd: string, env: Record<string, string> = {}) {
  const port = args.includes("--port") ? args[args.indexOf("--port") + 1] : `${await freePort()}`;
  const ready = /Ready on|[Ll]istening on/;
  const running = await start(command, args, ready, { cwd, env: { ...process.env, PORT: `${port}`, ...env } });
  try {
    const answers: { status: number; limit: string | null; retryAfter: string | null }[] = [];
    for (let i = 0; i < times; i++) {
      const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { "cf-connecting-ip": "192.0.2.7" } });
      await response.text();
      const { headers, status } = response;
      answers.push({ status, limit: headers.get("ratelimit"), retryAfter: headers.get("retry-after") });
    }
    return answers;
  } finally {
    await running.stop();
  }
}

/** Three immediately, and one more every ten seconds: enough requests are denied on a machine of any speed. */
function limited(answers: Awaited<ReturnType<typeof request>>): void {
  expect(answers.slice(0, 3).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(answers[0]?.limit).toMatch(/^"api";r=2/);
  for (const { status, retryAfter } of answers.slice(3)) {
    if (status === 429) expect(Number(retryAfter)).toBeGreaterThan(0);
    else expect(status).toBe(200);
  }
}

await inRuntime("workerd", (wrangler) => {
  const dev = async (folder: string) => {
    const port = `${await freePort()}`;
    return [wrangler, "dev", "--local", "--ip", "127.0.0.1", "--port", port, "--inspector-port", "0", "--cwd", folder];
  };

  test("examples/worker-durable-object limits requests in workerd", { timeout }, async () => {
    const folder = copied("worker-durable-object");
    limited(await request(8, process.execPath, await dev(folder), folder, QUIET));
  });

  test("examples/worker-kv counts requests in workerd", { timeout }, async () => {
    const folder = copied("worker-kv");
    const answers = await request(2, process.execPath, await dev(folder), folder, QUIET);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(answers[1]?.limit).toMatch(/^"quota";r=998/);
  });
});

await inRuntime("deno", (deno) => {
  test("examples/deno limits requests", { timeout }, async () => {
    const folder = copied("deno");
    const may = ["--unstable-kv", "--allow-net", "--allow-env", `--allow-read=${folder}`, `--allow-write=${folder}`];
    const args = ["run", "--no-prompt", "--no-remote", "--node-modules-dir=manual", ...may, "main.js"];
    const env = { DENO_NO_UPDATE_CHECK: "1", DENO_DIR: join(folder, ".deno"), DATABASE: join(folder, "kv.sqlite") };
    limited(await request(8, deno, args, folder, env));
  });
});

await inRuntime("bun", (bun) => {
  test("examples/bun limits requests", { timeout }, async () => {
    const folder = copied("bun");
    const env = { BUN_INSTALL_CACHE_DIR: folder, DO_NOT_TRACK: "1" };
    limited(await request(8, bun, ["--no-install", "main.js"], folder, env));
  });
});

await inRuntime("chromium", (program) => {
  test("examples/browser takes from one limit in two tabs", { timeout }, async () => {
    const folder = copied("browser");
    const env = { ...process.env, PORT: "0" };
    const running = await start(process.execPath, ["server.mjs"], /(http:\S+)\n/, { cwd: folder, env });
    const browser = await launch(program);
    try {
      const [url, own] = [running.ready[1] as string, join(folder, "own.js")];
      writeFileSync(own, "");
      // A module that does not exist, and one outside the package's folder.
      expect((await fetch(`${url}tidegate/none.js`)).status).toBe(404);
      expect(await (await fetch(`${url}tidegate/${own}`)).text()).toMatch(/^<!doctype html>/);
      const context = await browser.newContext();
      const shown: string[] = [];
      for (let tab = 0; tab < 2; tab++) {
        const page = await context.newPage();
        await page.goto(url);
        await page.locator("body[data-ready]").waitFor();
        for (let i = 0; i < 2; i++) {
          await page.evaluate("document.querySelector('output').value = ''");
          await page.locator("button").click();
          await page.waitForFunction("document.querySelector('output').value !== ''");
          shown.push(await page.evaluate<string>("document.querySelector('output').value"));
        }
      }
      expect(shown.slice(0, 3)).toEqual(["allowed; 2 left", "allowed; 1 left", "allowed; 0 left"]);
    } finally {
      await browser.close();
      await running.stop();
    }
  });
});
