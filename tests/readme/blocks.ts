import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

export const root: string = fileURLToPath(new URL("../..", import.meta.url));
export const readme: string = readFileSync(join(root, "README.md"), "utf8");

/** Whether a program is on the PATH. */
export function isInstalled(program: string): boolean {
  try {
    execFileSync("which", [program], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** A fenced block of a Markdown file, and the marks around it. */
export interface Fence {
  /** The heading above it. */
  readonly under: string;
  readonly language: string;
  readonly code: string;
  /** The comment above it, which readers do not see: `is <file>`, `in <file>`, `not run: <reason>`. */
  readonly mark: string;
  /** Code of the comment below it, `then …`, which runs after it. */
  readonly then: string;
}

export interface Block extends Fence {
  /** The output in its comments, line by line. */
  readonly prints: readonly string[];
  /** The file with its text, in a folder that resolves the package as a user's does. */
  readonly source: string;
  /** The same as JavaScript. */
  readonly file: string;
}

const FENCE = /(?:^<!-- ([^\n]*) -->\n)?^```(\w*)[^\n]*\n([\s\S]*?)^```$(?:\n<!-- then\n([\s\S]*?)-->$)?/gm;

/** Every fenced block of a page. */
export function fences(page: string): Fence[] {
  return [...page.matchAll(FENCE)].map(({ index, 1: mark = "", 2: language = "", 3: code = "", 4: then = "" }) => {
    const under = [...page.slice(0, index).matchAll(/^#+ (.*)$/gm)].at(-1)?.[1] ?? "";
    return { under, language, code, mark, then };
  });
}

export const printed = (code: string): string[] => [...code.matchAll(/\/\/ → (.*)$/gm)].map(([, line = ""]) => line);

const PROGRAM = /^(tsx?|jsx?)$/;

/** Writes every TypeScript or JavaScript block of a page that is not a file of the repository to a folder. */
export function blocks(page: string = readme, folder: string = "node_modules/.cache/tidegate/readme"): Block[] {
  const place = join(root, folder);
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, "package.json"), '{ "type": "module" }');
  const programs = fences(page).filter(({ language, mark }) => PROGRAM.test(language) && !/^i[sn] /.test(mark));
  return programs.map((fence, i) => {
    const base = join(place, `block-${i}`);
    const [source, file] = [`${base}.${fence.language}`, `${base}.js`];
    writeFileSync(source, fence.code);
    const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, jsx: ts.JsxEmit.ReactJSX };
    const whole = fence.code + fence.then;
    writeFileSync(file, ts.transpileModule(whole, { compilerOptions: options }).outputText);
    return { ...fence, prints: printed(whole), source, file };
  });
}

/** The compiler's errors under strict settings, by file. */
export function complaints(found: readonly Block[]): Map<string, string> {
  const program = ts.createProgram(
    found.map(({ source }) => source).filter((source) => /\.tsx?$/.test(source)),
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
  const errors = new Map<string, string>();
  for (const { file, messageText } of ts.getPreEmitDiagnostics(program)) {
    const name = file?.fileName ?? "";
    errors.set(name, `${errors.get(name) ?? ""}${ts.flattenDiagnosticMessageText(messageText, "\n")}\n`);
  }
  return errors;
}
