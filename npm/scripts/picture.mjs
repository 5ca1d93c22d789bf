// `npm run picture`: takes the README's picture of the playground again, light and dark.
import { buildPackage } from "./build.mjs";
import { playground } from "./playground.mjs";
import { root, run } from "./run.mjs";

await buildPackage();
await playground();
const env = { ...process.env, TIDEGATE_PICTURE: "take" };
await run(process.execPath, ["node_modules/vitest/vitest.mjs", "run", "--project", "readme", "tests/readme/picture"], {
  cwd: root,
  env,
});
