import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "tsdown";

/** Writes the names of the bundled packages to `dist/bundled.json`, of which their licences are made. */
const listBundled = {
  name: "list-bundled",
  generateBundle(
    this: { emitFile(file: object): string },
    _: unknown,
    chunks: Record<string, { moduleIds?: string[] }>,
  ) {
    const modules = Object.values(chunks).flatMap(({ moduleIds = [] }) => moduleIds);
    const names = modules.flatMap((id) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1] ?? []);
    const source = `${JSON.stringify([...new Set(names)].sort(), undefined, 2)}\n`;
    this.emitFile({ type: "asset", fileName: "bundled.json", source });
  },
};

const manifest = JSON.parse(readFileSync(fileURLToPath(new URL("package.json", import.meta.url)), "utf8")) as {
  dependencies: object;
  peerDependencies: object;
};
const installed = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.peerDependencies)];

export default defineConfig({
  entry: { cli: "src/cli.ts", bin: "src/bin.ts" },
  format: "esm",
  platform: "node",
  target: "es2022",
  // From the entry alone, whose types are written out.
  dts: { sourcemap: false, oxc: true },
  fixedExtension: false,
  sourcemap: false,
  hash: false,
  clean: true,
  logLevel: "warn",
  // `pg-native` is pg's choice, where it is installed.
  deps: { neverBundle: [/^node:/, "pg-native", ...installed.map((name) => new RegExp(`^${name}(/|$)`))] },
  plugins: [listBundled],
});
