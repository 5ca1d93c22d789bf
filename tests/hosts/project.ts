/** A user's project: the packed tarball, the programs of these tests, the shared vectors, and nothing else. */
import { cpSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { install, type Installed } from "../packaging/installed.ts";
import { vectorFiles } from "./vectors.ts";

const here = fileURLToPath(new URL("./", import.meta.url));

/** With the files of `tests/hosts/program` and those of the runtime's own folder. */
export function project(runtime: string): Installed {
  const user = install();
  for (const folder of ["program", runtime]) {
    cpSync(join(here, folder), user.folder, { recursive: true, filter: (path) => !path.endsWith(".test.ts") });
  }
  user.write("vectors.js", `export default ${JSON.stringify(vectorFiles())};\n`);
  return user;
}
