/** Node.js of another system, with the packed package and the addon that was built for it here. */
import { execFile } from "node:child_process";
import { copyFileSync, cpSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { output, root } from "../packaging/installed.ts";
import { addAddon, project } from "../hosts/project.ts";

const exec = promisify(execFile);

/** Where `npm run build:platforms` puts the addon for a platform; the last is not published. */
export const addonOf = (platform: string): string =>
  platform === "win32-x64-gnu"
    ? join(root, "target/x86_64-pc-windows-gnu/release/tidegate_node.dll")
    : join(root, `npm/${platform}/tidegate.${platform}.node`);

/** Whether `node npm/scripts/foreign.mjs <platform>` has installed its Node.js. */
export const isInstalled = (platform: string): boolean => existsSync(join(root, "target/foreign", platform));

export interface Foreign {
  readonly folder: string;
  write(path: string, text: string): string;
  /** Runs a program of the project, and parses what it prints. */
  run(program: string, ...args: string[]): Promise<unknown>;
  /** The same on this machine's Node.js. */
  runHere(program: string, ...args: string[]): Promise<unknown>;
}

/** A user's project whose programs another system's Node.js runs, with the addon as the package `@tidegate/<as>`, if it has one. */
export function foreign(platform: string, as: string = platform): Foreign {
  const printed = output(process.execPath, ["npm/scripts/foreign.mjs", platform], { cwd: root });
  const [program, ...before] = JSON.parse(printed.trim().split("\n").at(-1) as string) as [string, ...string[]];
  const user = project("program");
  // Before 20.19 Node.js does not find out by itself.
  writeFileSync(join(user.folder, "package.json"), JSON.stringify({ type: "module", private: true }));
  addAddon(user);
  const manifest = join(root, "npm", as, "package.json");
  if (existsSync(manifest)) {
    const addon = addonOf(platform);
    if (!existsSync(addon)) throw new Error(`${addon} is not built: npm run build:platforms -- ${platform}`);
    const place = join(user.folder, "node_modules", "@tidegate", as);
    cpSync(manifest, join(place, "package.json"), { recursive: true });
    copyFileSync(addon, join(place, `tidegate.${as}.node`));
  }
  const env = {
    ...process.env,
    NODE_OPTIONS: "",
    // Wine's own folder, its messages off; Node.js does not support the version of Windows that it reports.
    WINEPREFIX: join(root, "target/foreign/wine"),
    WINEDEBUG: "-all",
    // Where npm/scripts/foreign.mjs puts the library that Wine lacks.
    WINEPATH: `Z:${join(root, "target/foreign/win32-x64-gnu")}`.replaceAll("/", "\\"),
    NODE_SKIP_PLATFORM_CHECK: "1",
  };
  const options = { cwd: user.folder, env, maxBuffer: 2 ** 26 };
  const parsed = async (command: string, args: string[]): Promise<unknown> =>
    JSON.parse((await exec(command, args, options)).stdout);
  return {
    folder: user.folder,
    write: user.write,
    run: (name, ...args) => parsed(program, [...before, name, ...args]),
    runHere: (name, ...args) => parsed(process.execPath, [name, ...args]),
  };
}
