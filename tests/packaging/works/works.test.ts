/** The packed tarball in the tools that people build and run JavaScript with: builds and runs every row of `tools.ts`. */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { here, packageOf } from "../../../npm/tidegate/src/engine/addon.ts";
import { type Browser, findChromium, INSTALL, launch } from "../../support/chromium.ts";
import { BUN } from "../../../npm/scripts/bun.mjs";
import { watch } from "../../../npm/scripts/watch.mjs";
import { freePort } from "../../support/ports.ts";
import { Program } from "../../support/processes.ts";
import { serve } from "../../support/site.ts";
import { install, type Installed } from "../installed.ts";
import { add, addTidegate, folderOf } from "./folder.ts";
import { GROUPS } from "./groups.ts";
import { LAST_RUN, type Row, rowOf } from "./results.ts";
import { ANSWERS, type Tool } from "./tool.ts";
import { TOOLS } from "./tools.ts";

/** Less than the test's own limit, so that the error names the command and its processes. */
const LIMIT_MS = 300_000;

let user: Installed;
let browser: Browser;
beforeAll(async () => {
  const chromium = findChromium();
  if (chromium === undefined) throw new Error(`Chromium is not installed: ${INSTALL}`);
  user = install({ addons: true });
  browser = await launch(chromium);
});
afterAll(async () => {
  await browser?.close();
  user?.remove();
  mkdirSync(dirname(LAST_RUN), { recursive: true });
  writeFileSync(LAST_RUN, JSON.stringify({ order: TOOLS.map(({ name }) => name), passed }));
});

/** Ends a tool that hangs: a call that waits for it without a limit would hang the run. */
async function shell(command: string, cwd: string, env: NodeJS.ProcessEnv): Promise<string> {
  const { status, output } = await watch("sh", ["-c", command], { cwd, env, limitMs: LIMIT_MS });
  if (status !== 0) throw new Error(`${command}: exit code ${status}\n${output.slice(-6000)}`);
  return output;
}

const environment = (group: string, node?: string): NodeJS.ProcessEnv => {
  const { NODE_OPTIONS: _, VITEST: __, NODE_ENV: ___, ...env } = process.env;
  const nodes = node === undefined ? [] : [join(folderOf(`node-${node}`), "node_modules", `node-${node}`, "bin")];
  const programs = [...nodes, join(folderOf(group), "node_modules", ".bin")];
  return {
    ...env,
    PATH: [...programs, env["PATH"]].join(delimiter),
    CI: "1",
    BUN,
    NO_COLOR: "1",
    NEXT_TELEMETRY_DISABLED: "1",
    DO_NOT_TRACK: "1",
  };
};

/** Installs a group's packages, and the tarball. */
async function prepare(group: keyof typeof GROUPS): Promise<string> {
  const packages = Object.entries<string>(GROUPS[group]);
  const isNode = ([name]: readonly [string, string]): boolean => name.startsWith("node-");
  // A Node.js is large, and groups have the same: each has a folder of its own.
  for (const node of packages.filter(isNode)) await add(node[0], Object.fromEntries([node]));
  const folder = await add(group, Object.fromEntries(packages.filter((each) => !isNode(each))));
  addTidegate(folder, user);
  return folder;
}

/** A manifest that depends on the tarballs. The addons of other platforms are in no registry yet: this machine's stands for each. */
function manifestFor(manager: string): string {
  const manifest = JSON.parse(readFileSync(join(user.folder, "node_modules/tidegate/package.json"), "utf8")) as {
    optionalDependencies: Record<string, string>;
  };
  const addon = `file:${user.addons.find(({ name }) => name === packageOf(here()))?.tarball}`;
  const overrides = Object.fromEntries(Object.keys(manifest.optionalDependencies).map((name) => [name, addon]));
  const how = manager === "yarn" ? { resolutions: overrides } : { pnpm: { overrides } };
  return JSON.stringify({ name: "app", private: true, dependencies: { tidegate: `file:${user.tarball}` }, ...how });
}

async function copy(tool: Tool): Promise<string> {
  const folder = join(await prepare(tool.group), tool.name.replace(/\W+/g, "-"));
  rmSync(folder, { recursive: true, force: true });
  cpSync(join(import.meta.dirname, "apps", tool.app), folder, { recursive: true });
  for (const [name, text] of Object.entries(tool.files ?? {})) {
    const [, manager] = /^@tarball:(.*)$/.exec(text) ?? [];
    writeFileSync(join(folder, name), manager === undefined ? text : manifestFor(manager));
  }
  return folder;
}

/** What a page shows and sets once its script has run; a script that throws is an error. */
async function inChromium(url: string): Promise<unknown> {
  const tab = await browser.newPage();
  const errors: string[] = [];
  tab.on("pageerror", (error) => errors.push(`${error}`));
  tab.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await tab.goto(url);
  await tab.waitForFunction("globalThis.answers !== undefined", undefined, { timeout: 120_000 }).catch(() => {});
  const answers = await tab.evaluate("globalThis.answers");
  await tab.close();
  // Chromium looks for an icon by itself, and reports denials.
  expect(errors.filter((error) => !/404|429/.test(error))).toEqual([]);
  return answers;
}

/** Two requests pass with the limit's fields, the third is denied. */
async function denies(url: string): Promise<void> {
  const responses: Response[] = [];
  for (let at = 0; at < 3; at++) responses.push(await fetch(url));
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 429]);
  for (const { headers } of responses) expect(headers.get("RateLimit")).toMatch(/^"send";r=\d/);
  const denial = responses[2] as Response;
  expect(denial.headers.get("Content-Type")).toContain("application/problem+json");
  expect(Number(denial.headers.get("Retry-After"))).toBeGreaterThan(0);
}

async function served(tool: Tool, serve: NonNullable<Tool["serve"]>, cwd: string) {
  const { command, answers, limited = [], page: path } = serve;
  const port = `${await freePort()}`;
  const env = { ...environment(tool.group, tool.node), PORT: port, HOST: "127.0.0.1" };
  const server = new Program("sh", ["-c", command], { cwd, env });
  const origin = `http://127.0.0.1:${port}`;
  try {
    await server.answers(() => fetch(origin));
    for (const [route, text] of Object.entries(answers)) {
      const response = await fetch(origin + route);
      expect(`${route} ${await response.text()}`).toContain(text);
      expect(response.status).toBe(200);
    }
    for (const route of limited) await denies(origin + route);
    if (path !== undefined) expect(await inChromium(origin + path)).toBe(ANSWERS);
  } finally {
    void server.stop();
  }
}

/** Rows that were built and run, and worked. */
const passed: Row[] = [];

test.each(TOOLS.map((tool) => [tool.name, tool] as const))("%s", async (_, tool) => {
  await works(tool);
  passed.push(rowOf(tool));
});

async function works(tool: Tool): Promise<void> {
  const folder = await copy(tool);
  let output = "";
  for (const command of tool.run) output = await shell(command, folder, environment(tool.group, tool.node));
  if (tool.serve !== undefined) return served(tool, tool.serve, folder);
  if (tool.page === undefined) return expect(output).toContain(ANSWERS);
  writeFileSync(join(folder, "page.html"), `<!doctype html><script type="module" src="${tool.page}"></script>`);
  const site = await serve(folder);
  try {
    expect(await inChromium(`${site.origin}/page.html`)).toBe(ANSWERS);
  } finally {
    site.stop();
  }
}
