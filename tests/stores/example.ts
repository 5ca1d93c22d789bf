/** The program in `examples` that shows a store. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);

/** Runs it; `env` is where its database is. */
export function testExample(name: string, env: () => NodeJS.ProcessEnv, node: string = process.execPath): void {
  test(`examples/${name}: two logins are allowed, the third is not`, async () => {
    const program = fileURLToPath(new URL(`../../examples/${name}/main.mjs`, import.meta.url));
    const { stdout } = await run(node, [program], { env: { ...process.env, ...env() } });
    expect(stdout).toBe("first allowed, 1 left\nsecond allowed, 0 left\nthird try again later\n");
  });
}
