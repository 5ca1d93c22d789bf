/** Where the tools of a group are installed, and how. */
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { installer } from "../../../npm/scripts/bun.mjs";
import { digestOf } from "../../../npm/scripts/files.mjs";
import { type Installed, root } from "../installed.ts";

/**
 * What a group installs stays here: the tarball alone is renewed. Outside the repository, whose packages would be found, and
 * of every `node_modules`, in which tools compile nothing. Each copy of the repository has its own, also where another user's
 * is beside it.
 */
export const folderOf = (group: string): string =>
  join(tmpdir(), `tidegate-works-${digestOf(root, [], root).slice(0, 8)}`, group.replaceAll(" ", "-"));

/** Installs packages, unless the folder has these already. Deno and pnpm bring their programs as packages, and need no script. */
export async function add(group: string, dependencies: object): Promise<string> {
  const folder = folderOf(group);
  const manifest = JSON.stringify({ private: true, dependencies });
  const done = join(folder, "installed");
  if (existsSync(done) && readFileSync(done, "utf8") === manifest) return folder;
  // A lock file or packages that are left from another manifest would be found.
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), manifest);
  await promisify(execFile)(...installer(), { cwd: folder });
  writeFileSync(done, manifest);
  return folder;
}

/** Puts the tarball beside them, as npm unpacked it. */
export function addTidegate(folder: string, user: Installed): void {
  const place = join(folder, "node_modules/tidegate");
  rmSync(place, { recursive: true, force: true });
  cpSync(join(user.folder, "node_modules/tidegate"), place, { recursive: true });
}
