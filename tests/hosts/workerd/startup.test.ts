/** The start of a Worker with the package, beside one without: printed, not asserted, since other load affects it. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { install, type Installed, output } from "../../packaging/installed.ts";
import { inRuntime } from "../runtimes.ts";
import { QUIET } from "./server.ts";

const ROUNDS = 7;
const WORKERS = {
  bare: `export default { fetch: () => new Response("ok") };`,
  tidegate: `import { defineLimits, MINUTE } from "tidegate";
const limits = defineLimits({ api: { kind: "token bucket", rate: 10, period: MINUTE } });
export default { fetch: () => new Response(limits.limit("api").ok ? "ok" : "no") };`,
};

interface Module {
  readonly type: "ESModule" | "CompiledWasm";
  readonly path: string;
  readonly contents: Buffer;
}
interface Worker {
  dispatchFetch(url: string): Promise<{ text(): Promise<string> }>;
  dispose(): Promise<void>;
}

await inRuntime("workerd", (wrangler) => {
  let user: Installed;
  beforeAll(() => {
    user = install();
  });
  afterAll(() => user.remove());

  /** The files of the upload, the script first. */
  function modules(name: keyof typeof WORKERS): Module[] {
    user.write(`${name}.js`, WORKERS[name]);
    const args = ["deploy", `${name}.js`, "--name", name, "--dry-run", "--outdir", name];
    output(process.execPath, [wrangler, ...args, "--compatibility-date", "2026-04-01"], {
      cwd: user.folder,
      env: { ...process.env, ...QUIET },
    });
    const folder = join(user.folder, name);
    const type = (path: string) => (path.endsWith(".wasm") ? "CompiledWasm" : "ESModule");
    return readdirSync(folder)
      .filter((path) => /\.(js|wasm)$/.test(path))
      .sort((a, b) => Number(a.endsWith(".wasm")) - Number(b.endsWith(".wasm")))
      .map((path) => ({ type: type(path), path, contents: readFileSync(join(folder, path)) }));
  }

  /** Time from the start of workerd to the first response, ms. */
  async function firstAnswer(from: Module[]): Promise<number> {
    const name = "miniflare";
    const { Miniflare } = (await import(name)) as { Miniflare: new (options: object) => Worker };
    const began = performance.now();
    const worker = new Miniflare({ modules: from, compatibilityDate: "2026-04-01", cf: false });
    try {
      const answer = await worker.dispatchFetch("http://localhost/");
      expect(await answer.text()).toBe("ok");
      return performance.now() - began;
    } finally {
      await worker.dispose();
    }
  }

  test("a Worker whose limit is made at global scope answers its first request", async () => {
    const built = { bare: modules("bare"), tidegate: modules("tidegate") };
    const ms = { bare: [] as number[], tidegate: [] as number[] };
    for (let round = 0; round < ROUNDS; round++) {
      for (const name of ["bare", "tidegate"] as const) ms[name].push(await firstAnswer(built[name]));
    }
    const middle = (all: number[]): number => Math.round(all.toSorted((a, b) => a - b)[ROUNDS >> 1] as number);
    console.log(
      `workerd to its first answer, median of ${ROUNDS}: ${middle(ms.bare)} ms bare, ${middle(ms.tidegate)} ms with tidegate`,
    );
  });
});
