// A copy of the tree in which mutants are applied, so that a run that is killed leaves no mutant in the source.
import { createHash } from "node:crypto";
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";

const root = join(import.meta.dirname, "../..");
export const copy = process.env.TIDEGATE_MUTANTS ?? join(root, "target/mutants");

/** The process that uses the copy. */
const OWNER = join(copy, "target/owner");
/** The script of Redis, and the file that has its digest. */
const LUA = "npm/tidegate/src/stores/redis/tidegate.lua";
const LUA_CALLER = "npm/tidegate/src/stores/redis/script.ts";
/** The files that had a mutant, one a line: cargo may have built from one of them. */
const CHANGED = join(copy, "target/changed");

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** Takes the copy for this process: a second run would restore the file that a test of the first is about to read. */
function claim() {
  mkdirSync(join(copy, "target"), { recursive: true });
  try {
    writeFileSync(OWNER, String(process.pid), { flag: "wx" });
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
    const owner = Number(readFileSync(OWNER, "utf8"));
    if (isAlive(owner)) throw new Error(`process ${owner} uses ${copy}; name another folder: TIDEGATE_MUTANTS=../copy`);
    writeFileSync(OWNER, String(process.pid));
  }
  process.once("exit", () => rmSync(OWNER));
}

/** Copies a link. One into the tree becomes one into the copy, whose addon a mutant is in. */
function copyLink(from, to) {
  const target = resolve(dirname(from), readlinkSync(from));
  const inside = relative(root, target);
  symlinkSync(inside.startsWith("..") ? target : join(copy, inside), to, "junction");
}

/** Links the packages of a `node_modules`; caches are copied. */
function linkPackages(folder, into) {
  mkdirSync(into, { recursive: true });
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const [from, to] = [join(folder, entry.name), join(into, entry.name)];
    if (entry.name.startsWith("@")) linkPackages(from, to);
    else if (entry.isSymbolicLink()) copyLink(from, to);
    else if (entry.name === ".cache") cpSync(from, to, { recursive: true, verbatimSymlinks: true });
    else symlinkSync(from, to, "junction");
  }
}

function filter(path) {
  if (basename(path) !== "node_modules") return true;
  linkPackages(path, join(copy, relative(root, path)));
  return false;
}

/** Gives the files that had a mutant a time after all builds: cargo keeps a build that is newer than the files. */
function outdateBuilds() {
  const now = new Date();
  const files = existsSync(CHANGED) ? new Set(readFileSync(CHANGED, "utf8").split("\n")) : [];
  for (const file of files) if (file !== "" && existsSync(join(copy, file))) utimesSync(join(copy, file), now, now);
}

/** Makes the copy, with what is built. What cargo built in an earlier copy stays. */
export function makeCopy() {
  claim();
  const kept = ["target", ".git"];
  for (const name of readdirSync(copy)) if (!kept.includes(name)) rmSync(join(copy, name), { recursive: true });
  const options = { recursive: true, preserveTimestamps: true, verbatimSymlinks: true, filter };
  for (const name of readdirSync(root)) if (!kept.includes(name)) cpSync(join(root, name), join(copy, name), options);
  outdateBuilds();
}

const sha1 = (text) => createHash("sha1").update(text).digest("hex");

/** What the mutant changes: its file, and the digest by which the script of Redis is called, which else finds any mutant. */
function changesOf({ file, find, replace }) {
  const text = readFileSync(join(copy, file), "utf8");
  const mutated = text.replace(find, () => replace);
  const changes = [{ file, text, mutated }];
  if (file !== LUA) return changes;
  const caller = readFileSync(join(copy, LUA_CALLER), "utf8");
  return [...changes, { file: LUA_CALLER, text: caller, mutated: caller.replace(sha1(text), sha1(mutated)) }];
}

const write = (file, text) => writeFileSync(join(copy, file), text);

/** Runs `what` while `find` is replaced in a file of the copy. */
export function withMutant(mutant, what) {
  const changes = changesOf(mutant);
  for (const { file, mutated } of changes) {
    appendFileSync(CHANGED, `${file}\n`);
    write(file, mutated);
  }
  try {
    const result = what();
    for (const { file, mutated } of changes) {
      const path = join(copy, file);
      if (readFileSync(path, "utf8") !== mutated) throw new Error(`another process wrote ${path} during the test`);
    }
    return result;
  } finally {
    for (const { file, text } of changes) write(file, text);
  }
}
