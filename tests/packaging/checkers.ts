/** Other people's checks of a package that is to be published: compilers and linters. */
import { spawnSync } from "node:child_process";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { remove, temporaryFolder } from "../support/folders.ts";
import { output, root } from "./installed.ts";

/** The settings of an app that is checked strictly, our declarations too. Those of the compiler itself take most of its time. */
const STRICT = {
  target: "es2022",
  types: [],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false,
  skipDefaultLibCheck: true,
  noEmit: true,
};

/** What a TypeScript compiler reports of files in a folder: nothing, where they compile. */
export function typeErrors(
  folder: string,
  files: readonly string[],
  options: object,
  typescript: string = join(root, "node_modules/typescript-7"),
): string {
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: { ...STRICT, ...options }, files }));
  try {
    return output(process.execPath, [join(typescript, "bin/tsc"), "--project", "."], { cwd: folder });
  } catch (error) {
    return String(error);
  }
}

/** What publint finds in a tarball. */
export async function lint(tarball: string): Promise<readonly (string | undefined)[]> {
  const data = readFileSync(tarball);
  const buffer = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
  const { messages, pkg } = await publint({ pack: { tarball: buffer }, strict: true });
  return messages.map((message) => formatMessage(message, pkg, { color: false }));
}

interface TypeProblem {
  readonly resolutionKind?: string;
}

/** What arethetypeswrong finds in a tarball, in its four ways to resolve types. */
export function typeProblems(tarball: string, ...options: readonly string[]): readonly TypeProblem[] {
  const folder = temporaryFolder("attw");
  try {
    // To a file: the program ends before a pipe has taken all of it.
    const path = join(folder, "report.json");
    const file = openSync(path, "w");
    const attw = join(root, "node_modules/@arethetypeswrong/cli/dist/index.js");
    // Its exit code says whether there are problems; the report says which.
    const args = [attw, tarball, "--format", "json", ...options];
    spawnSync(process.execPath, args, { stdio: ["ignore", file, "inherit"] });
    closeSync(file);
    const { problems } = JSON.parse(readFileSync(path, "utf8")) as { problems: Record<string, TypeProblem[]> };
    return Object.values(problems).flat();
  } finally {
    remove(folder);
  }
}

/** The same for ES modules alone, without TypeScript's resolution from before `exports`, and `require` of an ES module. */
export const moduleTypeProblems = (tarball: string): readonly TypeProblem[] =>
  typeProblems(tarball, "--profile", "esm-only").filter(
    ({ resolutionKind = "" }) => !["node10", "node16-cjs"].includes(resolutionKind),
  );
