// The playground's page for the example server: Vite bundles it with the built package.
import { pathToFileURL } from "node:url";
import { build } from "./build.mjs";
import { once, run } from "./run.mjs";

const folder = "examples/playground";

export function playground() {
  const own = ["src", "index.html", "vite.config.ts"].map((path) => `${folder}/${path}`);
  const rest = ["examples/server/sandbox.mjs", "npm/scripts/uplot.mjs", "npm/tidegate/dist", "package-lock.json"];
  const inputs = [...own, ...rest];
  return once("playground", { inputs, outputs: [`${folder}/dist/index.html`] }, () => run("vite", ["build", folder]));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await build();
  await playground();
}
