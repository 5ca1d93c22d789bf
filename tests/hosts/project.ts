/** A user's project with only the packed tarball, the programs of these tests, and the shared vectors and documents. */
import { cpSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { here as machine, packageOf } from "../../npm/tidegate/src/engine/addon.ts";
import { forTests, install, type Installed, root } from "../packaging/installed.ts";
import { few, vectors } from "../stores/vectors.ts";
import { invalidJson } from "./invalid.ts";

const documents = fileURLToPath(new URL("../policies/", import.meta.url));
const here = fileURLToPath(new URL("./", import.meta.url));

/** With the files of `tests/hosts/program` and of the runtime's own folder. It is removed after the tests of the file. */
export function project(runtime: string): Installed {
  const user = forTests(install());
  for (const folder of ["program", runtime]) {
    // Without the runtimes themselves, which are hundreds of megabytes.
    const filter = (path: string) => basename(path) !== "node_modules" && !path.endsWith(".test.ts");
    cpSync(join(here, folder), user.folder, { recursive: true, filter });
  }
  cpSync(join(here, "../threads/worker.mjs"), join(user.folder, "threads.mjs"));
  const write = (path: string, texts: Readonly<Record<string, string>>) => {
    // As JSON text: in an object literal `__proto__` would not be a field, and tools take minutes to transform two megabytes of it.
    const lines = Object.entries(texts).map(([name, text]) => `${name} JSON.parse(${JSON.stringify(text)});\n`);
    user.write(path, lines.join(""));
  };
  write("vectors.js", { "export default": JSON.stringify(vectors) });
  write("few.js", { "export default": JSON.stringify(few) });
  const [valid = "", invalid = ""] = ["valid", "invalid"].map((name) =>
    readFileSync(join(documents, `${name}.json`), "utf8"),
  );
  write("documents.js", { "export const valid =": valid, "export const invalid =": invalid });
  write("invalid-vectors.js", { "export default": invalidJson() });
  return user;
}

/** Adds this machine's addon, as npm would install it. */
export function addAddon(user: Installed): void {
  const addon = packageOf(machine());
  const built = join(root, "npm", addon.replace("@tidegate/", ""));
  cpSync(built, join(user.folder, "node_modules", addon), { recursive: true });
}
