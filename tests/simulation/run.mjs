// Bundles the simulator, which is TypeScript, and runs it in this Node.js on the built package (npm/tidegate/dist).
import { createHash } from "node:crypto";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));

const { outputFiles } = await build({
  entryPoints: [at("main.ts")],
  bundle: true,
  packages: "external",
  platform: "node",
  format: "esm",
  target: "node20",
  sourcemap: "inline",
  sourcesContent: false,
  write: false,
  // The bundle's own place, from which its source map is relative.
  outfile: at("../../target/simulation/main.mjs"),
});
const [{ contents }] = outputFiles;
const name = createHash("sha256").update(contents).digest("hex").slice(0, 16);
const folder = at("../../target/simulation");
mkdirSync(folder, { recursive: true });
// Several of these may run at the same time: a rename is atomic.
const file = `${folder}/${name}.mjs`;
writeFileSync(`${file}.${process.pid}`, contents);
renameSync(`${file}.${process.pid}`, file);
process.setSourceMapsEnabled(true);
const { main } = await import(pathToFileURL(file).href);
await main(process.argv.slice(2), at("../.."));
