// Loads every entry of the package, with `import` and with `require`; prints those that fail.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { exports } = JSON.parse(readFileSync(new URL("node_modules/tidegate/package.json", import.meta.url), "utf8"));
const failed = [];
for (const path of Object.keys(exports).filter((path) => !/\.(json|sql|lua)$/.test(path))) {
  const entry = `tidegate${path.slice(1)}`;
  for (const load of [(name) => import(name), require]) {
    try {
      await load(entry);
    } catch (error) {
      failed.push(`${entry}: ${error.message.split("\n")[0]}`);
    }
  }
}
console.log(JSON.stringify(failed));
