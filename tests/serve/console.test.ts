/** `--console`: the page of tidegate-console, on the policies of a running service. */
import { cpSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { PolicyDocument } from "tidegate/policies";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Browser, inChromium, launch, type Page } from "../support/chromium.ts";
import { remove, temporaryFolder } from "../support/folders.ts";
import { start } from "../support/processes.ts";
import { BIN, NUMBERS, root, type Served, serving, TOKEN } from "./service.ts";

const POLICIES: PolicyDocument = {
  rules: [
    { name: "api", limit_keys: ["ip:address"], ...NUMBERS },
    { name: "both", limit_keys: ["header:x-tenant", "header:x-user"], ...NUMBERS },
    {
      name: "plans",
      limit_keys: ["header:x-key"],
      ...NUMBERS,
      tiers: { by: "header:x-plan", settings: { pro: { rate: 10, period: "1m" } } },
    },
  ],
};
const WITH = ["--console"];
const ENV = { TIDEGATE_ADMIN_TOKEN: TOKEN };
const basic = (word: string) => ({ authorization: `Basic ${btoa(`admin:${word}`)}` });

describe("/console", () => {
  test("requires the token, as a bearer's or as the password of any name", async () => {
    await using service = await serving(POLICIES, WITH, ENV);
    for (const headers of [
      {},
      basic(""),
      basic(`${TOKEN}0`),
      { authorization: `Bearer ${TOKEN}0` },
      { authorization: "x" },
    ]) {
      const { status, headers: fields } = await service.request("/console", { headers });
      expect([status, fields.get("www-authenticate")]).toEqual([401, 'Basic realm="tidegate", charset="UTF-8"']);
    }
    for (const headers of [basic(TOKEN), { authorization: `Bearer ${TOKEN}` }]) {
      const { status, body } = await service.request("/console", { headers });
      expect([status, (body as string).slice(0, 15)]).toEqual([200, "<!doctype html>"]);
    }
    const read = JSON.stringify({ operation: "reset", name: "api", key: "192.0.2.1" });
    const post = (headers: object) =>
      service.request("/console", { method: "POST", body: read, headers: { ...basic(TOKEN), ...headers } });
    expect((await post({})).status).toBe(403);
    expect((await post({ "sec-fetch-site": "cross-site" })).status).toBe(403);
    expect((await post({ "sec-fetch-site": "same-origin" })).body).toMatchObject({ value: 3, capacity: 3 });
    const large = { method: "POST", body: " ".repeat(70_000), headers: basic(TOKEN) };
    expect((await service.request("/console", large)).status).toBe(413);
  });

  test("does not exist without the option", async () => {
    await using service = await serving(POLICIES, [], ENV);
    expect((await service.request("/console", { headers: basic(TOKEN) })).status).toBe(404);
  });

  test("what the page reads is no decision: the metrics do not count it", async () => {
    await using service = await serving(POLICIES, WITH, ENV);
    const body = JSON.stringify({ operation: "read", name: "api", key: "192.0.2.1" });
    const headers = { ...basic(TOKEN), "sec-fetch-site": "same-origin" };
    await service.request("/console", { method: "POST", body, headers });
    await service.post("/v1/decide", { name: "api", key: "192.0.2.1" });
    const { body: metrics } = await service.request("/metrics");
    const counted = (metrics as string).split("\n").filter((line) => line.startsWith("tidegate_decisions_total{"));
    expect(counted).toEqual([expect.stringContaining('operation="limit",outcome="granted"')]);
  });

  test("an open page does not delay the end of the service", async () => {
    // Its connection, then idle, ends after a tenth of the time.
    await using service = await serving(POLICIES, [...WITH, "--shutdown-timeout", "1m"], ENV);
    const stream = await fetch(`${service.url}/console?stream`, { headers: basic(TOKEN) });
    expect(stream.headers.get("content-type")).toBe("text/event-stream");
    expect(await service.end()).toBe(0);
    expect(await stream.text()).toContain("event: figures");
    expect(service.log().at(-1)).toMatchObject({ event: "stopped" });
    expect(service.log().at(-1)).not.toHaveProperty("message");
  });
});

describe("on the command line", () => {
  const folder = temporaryFolder("no-console");
  afterAll(() => remove(folder));
  /** Runs the service of this folder, which has to end by itself, and returns its error. */
  async function fails(bin: string, env: object): Promise<[number | string, string]> {
    const path = join(root, "examples/serve/policies.json");
    const running = await start(process.execPath, [bin, path, "--console", "--port", "0"], /tidegate-serve: .*\n/, {
      env: { ...process.env, ...env },
    });
    return [await running.ended, running.output()];
  }

  test("--console without a token names what is needed", async () => {
    const message =
      "tidegate-serve: --console needs the administrator's token: --admin-token-file, or TIDEGATE_ADMIN_TOKEN\n";
    expect(await fails(BIN, { TIDEGATE_ADMIN_TOKEN: undefined })).toEqual([2, message]);
  });

  test("--console where the package is not installed names it", async () => {
    const modules = join(folder, "node_modules");
    mkdirSync(join(modules, "tidegate-serve"), { recursive: true });
    for (const part of ["dist", "package.json"]) {
      cpSync(join(root, "npm/tidegate-serve", part), join(modules, "tidegate-serve", part), { recursive: true });
    }
    symlinkSync(join(root, "npm/tidegate"), join(modules, "tidegate"));
    const message =
      "tidegate-serve: --console is the package tidegate-console, which is not installed: npm install tidegate-console\n";
    expect(await fails(join(modules, "tidegate-serve/dist/bin.js"), ENV)).toEqual([2, message]);
  });
});

inChromium("the page, in Chromium", thePage);

function thePage(path: string): void {
  let service: Served;
  let browser: Browser;
  let page: Page;
  const errors: string[] = [];
  beforeAll(async () => {
    service = await serving(POLICIES, WITH, ENV);
    browser = await launch(path);
    const context = await browser.newContext({
      viewport: { width: 1280, height: 900 },
      // As a person answers the browser's own question.
      httpCredentials: { username: "admin", password: TOKEN },
    });
    page = await context.newPage();
    page.setDefaultTimeout(60_000);
    page.on("pageerror", (error) => errors.push(`${error}`));
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    await page.goto(`${service.url}/console`);
    await page.getByText("live", { exact: true }).waitFor();
  });
  afterAll(async () => {
    await browser?.close();
    await service?.[Symbol.asyncDispose]();
  });
  const top = () => page.getByRole("region", { name: "Most denied keys" });
  const one = () => page.getByRole("region", { name: "One key" });
  const deny = async (body: object) => {
    for (let i = 0; i < 4; i++) await service.post("/v1/decide", body);
  };

  test("lists the rules, and denied keys as their requests have them", async () => {
    expect(await page.locator(".card h3").allTextContents()).toEqual(["api", "both"]);
    await deny({ name: "api", key: "203.0.113.9" });
    await deny({ name: "both", key: ["acme", null] });
    await deny({ name: "plans", key: "k1" });
    await top().getByRole("button", { name: "203.0.113.9" }).waitFor();
    await top().getByRole("button", { name: '["acme",null]' }).waitFor();
    // Its tier is not stored, so that its state cannot be shown.
    await top().getByRole("cell", { name: "plans" }).waitFor();
    expect(await top().getByRole("button", { name: "k1" }).count()).toBe(0);
    expect(await one().getByLabel("Limit").locator("option").allTextContents()).toEqual(["api", "both"]);
  });

  test("a denied key is let in, one of several parts too, and the service then decides so", async () => {
    const decide = async (body: object) => (await service.post("/v1/decide", body)).body;
    await top().getByRole("button", { name: "203.0.113.9" }).click();
    await one().getByText("next grant of 1 token").waitFor();
    await one().getByRole("button", { name: "Reset" }).click();
    await page.getByText("Reset: 3 of 3 tokens.", { exact: true }).waitFor({ state: "attached" });
    expect((await decide({ name: "api", key: "203.0.113.9" })).remaining).toBe(2);
    await top().getByRole("button", { name: '["acme",null]' }).click();
    await one().getByRole("heading", { name: "both" }).waitFor();
    await one().getByRole("button", { name: "Reset" }).click();
    await one().locator("b", { hasText: /^3$/ }).waitFor();
    expect((await decide({ name: "both", key: ["acme", null] })).remaining).toBe(2);
  });

  test("a key that is typed is blocked, and the service denies it until then", async () => {
    await one().getByLabel("Limit").selectOption("api");
    await one().getByLabel("Key").fill("198.51.100.4");
    await one().getByRole("button", { name: "Look up" }).click();
    await one().getByRole("heading", { name: "198.51.100.4" }).waitFor();
    await one().getByLabel("Block for").fill("9h");
    await one().getByRole("button", { name: "Block" }).click();
    await page.getByText(/^Blocked for 9h: -\d+/).waitFor({ state: "attached" });
    const { body } = await service.post("/v1/check", { name: "api", key: "198.51.100.4" });
    expect([body.ok, body.retryAfter > 31_500_000]).toEqual([false, true]);
  });

  test("a limit is put into shadow mode, which lets the denied through, and back", async () => {
    const body = { name: "api", key: "198.51.100.4" };
    const decides = async () => (await service.post("/v1/decide", body)).body.ok;
    expect(await decides()).toBe(false);
    const api = page.locator(".card", { has: page.getByRole("heading", { name: "api", exact: true }) });
    const toggle = api.getByRole("button", { name: "Shadow mode of api" });
    await toggle.click();
    await api.getByText("Denies nothing, in this process.").waitFor();
    expect([await toggle.getAttribute("aria-pressed"), await decides()]).toEqual(["true", true]);
    await page.getByText("api is in shadow mode: it denies nothing.").waitFor({ state: "attached" });
    await toggle.click();
    await api.getByText("Denies nothing, in this process.").waitFor({ state: "detached" });
    expect([await toggle.getAttribute("aria-pressed"), await decides()]).toEqual(["false", false]);
    // Of a rule with tiers, too.
    await page.getByRole("button", { name: "Shadow mode of plans" }).waitFor();
  });

  test("a mistake is shown with its reason, and nothing was refused by the policies of the page", async () => {
    await one().getByLabel("Limit").selectOption("both");
    await one().getByLabel("Key").fill("acme");
    await one().getByRole("button", { name: "Look up" }).click();
    expect(await one().getByRole("alert").textContent()).toContain("in order: header:x-tenant, header:x-user");
    expect(errors.filter((error) => !/status of 40[01]/.test(error))).toEqual([]);
    const folder = process.env["TIDEGATE_SCREENSHOTS"];
    if (folder !== undefined) await page.screenshot({ path: `${folder}/serve-console.png`, fullPage: true });
  });
}
