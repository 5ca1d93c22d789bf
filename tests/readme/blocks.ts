import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

export const root: string = fileURLToPath(new URL("../..", import.meta.url));
export const readme: string = readFileSync(join(root, "README.md"), "utf8");

export interface Block {
  /** The heading that it stands under. */
  readonly under: string;
  readonly code: string;
  /** What its comments say that it prints, line by line. */
  readonly prints: readonly string[];
  /** The file it was written to as it is, where the package resolves as a user has it. */
  readonly source: string;
  /** The same as JavaScript. */
  readonly file: string;
}

const folder = join(root, "node_modules", ".cache", "tidegate", "readme");

/** Every block of TypeScript, written to files. */
export function blocks(): Block[] {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  const found: Block[] = [];
  for (const { index, 1: kind = "", 2: code = "" } of readme.matchAll(/^```(tsx?)\n([\s\S]*?)^```$/gm)) {
    const under = [...readme.slice(0, index).matchAll(/^#+ (.*)$/gm)].at(-1)?.[1] ?? "";
    const prints = [...code.matchAll(/\/\/ → (.*)$/gm)].map(([, line = ""]) => line);
    const base = join(folder, `block-${found.length}`);
    writeFileSync(`${base}.${kind}`, code);
    const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, jsx: ts.JsxEmit.ReactJSX };
    writeFileSync(`${base}.js`, ts.transpileModule(code, { compilerOptions: options }).outputText);
    found.push({ under, code, prints, source: `${base}.${kind}`, file: `${base}.js` });
  }
  return found;
}

/** What the compiler says of them under the strictest of settings, by file. */
export function complaints(found: readonly Block[]): Map<string, string> {
  const program = ts.createProgram(
    found.map(({ source }) => source),
    {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      noEmit: true,
      skipLibCheck: true,
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      target: ts.ScriptTarget.ES2022,
      jsx: ts.JsxEmit.ReactJSX,
      types: ["node"],
      typeRoots: [join(root, "node_modules", "@types")],
    },
  );
  const said = new Map<string, string>();
  for (const { file, messageText } of ts.getPreEmitDiagnostics(program)) {
    const name = file?.fileName ?? "";
    said.set(name, `${said.get(name) ?? ""}${ts.flattenDiagnosticMessageText(messageText, "\n")}\n`);
  }
  return said;
}
