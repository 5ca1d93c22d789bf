// A copy of the tree in which mutants are applied, so that a run that is killed leaves no mutant in the source.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join, relative } from "node:path";

const root = join(import.meta.dirname, "../..");
export const copy = process.env.TIDEGATE_MUTANTS ?? join(root, "target/mutants");

/** Links the packages of a `node_modules`. A link into the tree becomes one into the copy; caches are copied. */
function linkPackages(folder, into) {
  mkdirSync(into, { recursive: true });
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const [from, to] = [join(folder, entry.name), join(into, entry.name)];
    if (entry.name.startsWith("@")) linkPackages(from, to);
    else if (entry.isSymbolicLink() || entry.name === ".cache")
      cpSync(from, to, { recursive: true, verbatimSymlinks: true });
    else symlinkSync(from, to, "junction");
  }
}

function filter(path) {
  if (basename(path) !== "node_modules") return true;
  linkPackages(path, join(copy, relative(root, path)));
  return false;
}

/** Makes the copy, with what is built. What cargo built in an earlier copy stays. */
export function makeCopy() {
  const kept = ["target", ".git"];
  mkdirSync(copy, { recursive: true });
  for (const name of readdirSync(copy)) if (!kept.includes(name)) rmSync(join(copy, name), { recursive: true });
  const options = { recursive: true, preserveTimestamps: true, verbatimSymlinks: true, filter };
  for (const name of readdirSync(root)) if (!kept.includes(name)) cpSync(join(root, name), join(copy, name), options);
}

/** Runs `what` while `find` is replaced in a file of the copy. */
export function withMutant({ file, find, replace }, what) {
  const path = join(copy, file);
  const text = readFileSync(path, "utf8");
  writeFileSync(
    path,
    text.replace(find, () => replace),
  );
  try {
    return what();
  } finally {
    writeFileSync(path, text);
  }
}
