import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const source = (path: string): string => fileURLToPath(new URL(`../../npm/tidegate/src/${path}`, import.meta.url));
const mutant = JSON.parse(process.env["TIDEGATE_MUTANT"] || "null") as null | {
  file: string;
  find: string;
  replace: string;
};

/** The source as it is, but for one place. */
export default defineConfig({
  root: fileURLToPath(new URL("../..", import.meta.url)),
  plugins: [
    {
      name: "mutant",
      enforce: "pre",
      load(id: string): string | undefined {
        if (/\.(lua|sql)$/.test(id)) return `export default ${JSON.stringify(readFileSync(id, "utf8"))};`;
        if (mutant === null || id !== source(mutant.file)) return undefined;
        return readFileSync(id, "utf8").replace(mutant.find, () => mutant.replace);
      },
    },
  ],
  resolve: {
    alias: { "#engine-host": source("engine/host-node.ts"), "#policy-host": source("policies/host-inline.ts") },
  },
  test: { include: ["npm/tidegate/test/**/*.test.ts"], testTimeout: 60_000, hookTimeout: 60_000 },
});
