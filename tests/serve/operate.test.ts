/** Reload, the routes of the administrator, and metrics. */
import { renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { PolicyDocument } from "tidegate/policies";
import { POLICIES, type Served, serving, TOKEN } from "./service.ts";

const [RULE] = POLICIES.rules;
const withCapacity = (capacity: number): PolicyDocument => ({
  rules: [{ ...(RULE as PolicyDocument["rules"][number]), algorithm_config: { rate: 1, period: "1h", capacity } }],
});
/** Replaces the policies in one step: of a file that is written in place, the service may read a part. */
function replace(service: Served, text: string): void {
  const next = join(service.folder, "next.json");
  writeFileSync(next, text);
  renameSync(next, service.policies);
}
const capacityOf = async (service: Served): Promise<number> =>
  (await service.post("/v1/check", { name: "api", key: "192.0.2.1", count: 0 })).body.limit;

describe("a reload", () => {
  test("follows a file that changes in place, and the limits keep their state", async () => {
    await using service = await serving();
    await service.post("/v1/decide", { name: "api", key: "192.0.2.1", count: 3 });
    writeFileSync(service.policies, JSON.stringify(withCapacity(10)));
    expect(await service.logged("policies reloaded")).toMatchObject({ reason: "file changed", rules: ["api"] });
    const { body } = await service.post("/v1/check", { name: "api", key: "192.0.2.1", count: 0 });
    expect([body.limit, body.remaining]).toEqual([10, 0]);
  });

  test("follows a file that is replaced by another", async () => {
    await using service = await serving();
    replace(service, JSON.stringify(withCapacity(7)));
    await service.logged("policies reloaded");
    expect(await capacityOf(service)).toBe(7);
  });

  test("follows SIGHUP; policies with mistakes are logged, and the old ones stay in force", async () => {
    await using service = await serving();
    service.running.child.kill("SIGHUP");
    expect(await service.logged("policies reloaded")).toMatchObject({ reason: "SIGHUP" });
    const wrong = { rules: [{ ...RULE, algorithm_config: { rate: -1, period: "1m" } }, { name: "x y" }] };
    replace(service, JSON.stringify(wrong));
    const line = await service.logged("policies not reloaded");
    expect(line).toMatchObject({ level: "error", message: "the old policies stay in force" });
    const mistakes = line["mistakes"] as string[];
    expect(mistakes.length).toBeGreaterThan(1);
    expect(mistakes[0]).toMatch(/^rule 0 "api": `algorithm_config\.rate` must be /);
    expect(await capacityOf(service)).toBe(3);
    replace(service, "{ not JSON");
    expect((await service.logged("policies not reloaded", 2))["mistakes"]).toEqual([expect.stringContaining("JSON")]);
    expect(await capacityOf(service)).toBe(3);
    replace(service, JSON.stringify(withCapacity(5)));
    await service.logged("policies reloaded", 2);
    expect(await capacityOf(service)).toBe(5);
  });

  test("keeps the old policies in force while the file cannot be read", async () => {
    await using service = await serving();
    const link = join(service.folder, "link");
    symlinkSync("policies.json", link);
    renameSync(link, service.policies);
    expect((await service.logged("policies not reloaded"))["mistakes"]).toEqual([expect.stringContaining("ELOOP")]);
    expect(await capacityOf(service)).toBe(3);
    replace(service, JSON.stringify(withCapacity(5)));
    await service.logged("policies reloaded");
    expect(await capacityOf(service)).toBe(5);
  });

  test("reads a file again that could not be read once, as while it is locked or the process has no file handles left", async () => {
    // Its first two reads with the new capacity.
    const fails = "if(String(text).includes('\"capacity\":5')&&++reads<3)throw Error('EMFILE')";
    const hook = `import fs from 'node:fs';import{syncBuiltinESMExports}from'node:module';const{readFileSync}=fs;let reads=0;
      fs.readFileSync=(...args)=>{const text=readFileSync(...args);${fails};return text};syncBuiltinESMExports()`;
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(hook)}`;
    await using service = await serving(POLICIES, [], { NODE_OPTIONS });
    replace(service, JSON.stringify(withCapacity(5)));
    await service.logged("policies reloaded");
    expect(await capacityOf(service)).toBe(5);
    const failed = service.log().filter(({ event }) => event === "policies not reloaded");
    expect(failed.map((line) => line["mistakes"])).toEqual([["EMFILE"]]);
  });

  test("signals that come at one time, as while large policies are read, are one reload", async () => {
    const hangups = "process.on('SIGUSR2',()=>{for(const{}of'five!')process.emit('SIGHUP')})";
    await using service = await serving(POLICIES, [], { NODE_OPTIONS: `--import=data:text/javascript,${hangups}` });
    service.running.child.kill("SIGUSR2");
    await service.logged("policies reloaded");
    expect(await capacityOf(service)).toBe(3);
    expect(await service.end()).toBe(0);
    expect(service.log().map(({ event }) => event)).toEqual(["started", "policies reloaded", "stopping", "stopped"]);
  });

  test("does not follow SIGHUP on Windows, where it ends the console and the service", async () => {
    const windows = "Object.defineProperty(process,'platform',{value:'win32'})";
    await using service = await serving(POLICIES, [], { NODE_OPTIONS: `--import=data:text/javascript,${windows}` });
    service.running.child.kill("SIGHUP");
    await service.logged("stopped");
    expect(service.log().map(({ event }) => event)).toEqual(["started", "stopping", "stopped"]);
  });

  test("gives another rule of the same name keys of its own", async () => {
    await using service = await serving();
    const rule = { ...(RULE as PolicyDocument["rules"][number]), limit_keys: ["header:x-a", "header:x-b"] as const };
    replace(service, JSON.stringify({ rules: [rule] }));
    await service.logged("policies reloaded");
    expect((await service.post("/v1/decide", { name: "api", key: "a" })).body.field).toBe("key");
    expect((await service.post("/v1/decide", { name: "api", key: ["a", "b"] })).body.ok).toBe(true);
  });
});

describe("the routes of the administrator", () => {
  const auth = { authorization: `Bearer ${TOKEN}` };
  const target = { name: "api", key: "192.0.2.1" };

  test("read, reset, give and charge one limit and key", async () => {
    await using service = await serving(POLICIES, [], { TIDEGATE_ADMIN_TOKEN: TOKEN });
    const state = () => service.request("/v1/state?name=api&key=192.0.2.1", { headers: auth });
    await service.post("/v1/decide", { ...target, count: 3 });
    const empty = await state();
    expect(empty.body).toMatchObject({ name: "api", config: { kind: "token bucket", rate: 1, capacity: 3 } });
    expect(empty.body.value).toBeLessThan(1);
    expect((await service.post("/v1/give", { ...target, count: 2 }, auth)).body.remaining).toBe(2);
    expect((await service.post("/v1/charge", { ...target, count: 4 }, auth)).body.value).toBeLessThan(-1);
    const reset = await service.post("/v1/reset", target, auth);
    expect([reset.status, reset.body.value]).toEqual([200, 3]);
    expect((await state()).body.value).toBe(3);
  });

  test("block a limit and key for a time, until it is reset", async () => {
    await using service = await serving(POLICIES, [], { TIDEGATE_ADMIN_TOKEN: TOKEN });
    const { body } = await service.post("/v1/block", { ...target, for: "15m" }, auth);
    expect(body).toMatchObject({ ok: true, retryAt: body.now + 900_000 });
    const denied = await service.post("/v1/decide", target);
    expect(denied.body).toMatchObject({ ok: false, retryAt: body.retryAt });
    await service.post("/v1/reset", target, auth);
    expect((await service.post("/v1/decide", target)).body.ok).toBe(true);
    const wrong = await service.post("/v1/block", { ...target, for: "soon" }, auth);
    expect([wrong.status, wrong.body.field]).toEqual([400, "for"]);
  });

  test("require the token, from the file or the environment", async () => {
    await using service = await serving(POLICIES, [], { TIDEGATE_ADMIN_TOKEN: TOKEN });
    const wrong = { authorization: `Bearer ${TOKEN}0` };
    const basic = { authorization: `Basic ${TOKEN}` };
    for (const headers of [{}, wrong, basic]) {
      for (const path of ["/v1/reset", "/v1/give", "/v1/charge", "/v1/block"]) {
        const { status, headers: fields, body } = await service.post(path, target, headers);
        expect([status, fields.get("www-authenticate"), body.title]).toEqual([401, "Bearer", "Unauthorized"]);
      }
      expect((await service.request("/v1/state?name=api&key=1", { headers })).status).toBe(401);
    }
    writeFileSync(join(service.folder, "token"), `${TOKEN}\n`);
    const file = join(service.folder, "token");
    await using other = await serving(POLICIES, ["--admin-token-file", file]);
    expect((await other.post("/v1/reset", target, auth)).status).toBe(200);
    expect(other.running.output()).not.toContain(TOKEN);
  });

  test("a mistake in a query names the parameter", async () => {
    await using service = await serving(POLICIES, [], { TIDEGATE_ADMIN_TOKEN: TOKEN });
    const of = async (query: string) => {
      const { status, body } = await service.request(`/v1/state?${query}`, { headers: auth });
      return [status, body.field];
    };
    expect(await of("name=apl&key=1")).toEqual([400, "name"]);
    expect(await of("name=api")).toEqual([400, "key"]);
    expect(await of("name=api&key=1&key=2")).toEqual([400, "key"]);
    expect(await of("name=api&name=api&key=1")).toEqual([400, "name"]);
    expect(await of("name=api&key=1&cost=1")).toEqual([400, "cost"]);
  });
});

describe("GET /metrics", () => {
  /** The value of a series, and that the whole text is in Prometheus' format. */
  async function series(service: Served, name: string): Promise<number | undefined> {
    const { headers, body } = await service.request("/metrics");
    expect(headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
    const lines = (body as string).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    for (const line of lines)
      expect(line).toMatch(/^[a-z_][a-z0-9_]*(\{([a-z]+="[^"\n]*",?)+\})? (-?[\d.]+(e[+-]?\d+)?|Na[nN]|\+Inf)$/);
    const found = lines.find((line) => line.startsWith(`${name} `));
    return found === undefined ? undefined : Number(found.split(" ").at(-1));
  }

  test("counts decisions, waits, responses, reloads and evictions", async () => {
    await using service = await serving();
    for (let i = 0; i < 5; i++) await service.post("/v1/decide", { name: "api", key: "192.0.2.1" });
    await service.post("/v1/decide", { name: "no" });
    await service.request("/none");
    service.running.child.kill("SIGHUP");
    await service.logged("policies reloaded");
    const decisions = (outcome: string) =>
      `tidegate_decisions_total{limit="api",operation="limit",outcome="${outcome}",degraded="false"}`;
    expect(await series(service, decisions("granted"))).toBe(3);
    expect(await series(service, decisions("denied"))).toBe(2);
    expect(await series(service, 'tidegate_wait_seconds_count{limit="api"}')).toBe(2);
    expect(await series(service, 'tidegate_wait_seconds_bucket{le="10",limit="api"}')).toBe(0);
    expect(await series(service, 'tidegate_http_responses_total{route="/v1/decide",status="200"}')).toBe(5);
    expect(await series(service, 'tidegate_http_responses_total{route="/v1/decide",status="400"}')).toBe(1);
    expect(await series(service, 'tidegate_http_responses_total{route="/*",status="404"}')).toBe(1);
    expect(await series(service, 'tidegate_policy_reloads_total{result="ok"}')).toBe(1);
    expect(await series(service, "tidegate_evictions_total")).toBe(0);
    expect(await series(service, "process_resident_memory_bytes")).toBeGreaterThan(1e6);
  });

  test("no client can add a series: neither a path nor a name is a label", async () => {
    await using service = await serving();
    // The process' own series come with events such as a garbage collection of another kind.
    const count = async () => ((await service.request("/metrics")).body as string).match(/^tidegate_/gm)?.length;
    await service.post("/v1/decide", { name: "no" });
    await service.request("/none");
    await service.request("/metrics");
    const before = await count();
    expect(before).toBeGreaterThan(0);
    for (let i = 0; i < 20; i++) {
      await service.request(`/path-${i}`);
      await service.post("/v1/decide", { name: `name-${i}` });
    }
    expect(await count()).toBe(before);
  });
});
