// node run.mjs [--json figures.json]
//
// Bundle sizes, minified by esbuild, after gzip: ours by host, and the peers'; and what npm downloads and unpacks.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { versionOf } from "../installed.mjs";
import { figure, options, publish } from "../tables.mjs";
import { OURS, PEERS, scriptOf } from "./programs.mjs";

const given = options(1);
const here = fileURLToPath(new URL("./", import.meta.url));
const npm = new URL("../../../npm/", import.meta.url);
const kB = (bytes) => figure(bytes / 1000, 1);
const zipped = (bytes) => gzipSync(bytes).length;

const rows = [];
for (const [name, program] of Object.entries(OURS)) {
  const script = zipped(await scriptOf(program, here));
  const wasm = program.wasm ? zipped(readFileSync(new URL(`tidegate/dist/engine/generated/${program.wasm}`, npm))) : 0;
  rows.push([`tidegate: ${name}`, kB(script + wasm)]);
}
for (const [name, program] of Object.entries(PEERS)) rows.push([name, kB(zipped(await scriptOf(program, here)))]);

/** The tarball that `npm pack` makes of a folder. */
function packed(folder) {
  const args = ["pack", "--dry-run", "--json", "--ignore-scripts"];
  const { stdout } = spawnSync("npm", args, { cwd: new URL(folder, npm), encoding: "utf8" });
  const [{ size, unpackedSize }] = JSON.parse(stdout);
  return [kB(size), kB(unpackedSize)];
}
const { arch, platform } = process;
const libc = platform === "linux" ? (process.report.getReport().header.glibcVersionRuntime ? "-gnu" : "-musl") : "";
const addon = `${platform}-${arch}${platform === "win32" ? "-msvc" : libc}`;
const tables = [
  { title: "A program's bundle", head: ["", "kB after gzip"], rows },
  {
    title: "From npm",
    head: ["", "kB to download", "kB on disk"],
    rows: [
      ["tidegate, with no dependencies", ...packed("tidegate/")],
      [`the addon for ${addon}, optional`, ...packed(`${addon}/`)],
    ],
  },
];
publish(given, tables, Object.fromEntries(Object.keys(PEERS).map((name) => [name, versionOf(name)])));
