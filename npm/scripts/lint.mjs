// `npm run lint`: code, formatting, and the spelling and wording of the documents. `npm run format` fixes what can be fixed safely.
import { setup } from "./build.mjs";
import { installWorkspace } from "./install.mjs";
import { run } from "./run.mjs";

const fix = process.argv.includes("--fix");
await setup();
await installWorkspace();
await run("biome", ["check", fix ? "--write" : "--error-on-warnings"]);
// cspell.json has the words that are not in a dictionary, and those that this project does not use.
if (!fix) await run("cspell", ["lint", "--no-progress", "--quiet"]);
await run("cargo", ["fmt", "--all", ...(fix ? [] : ["--check"])]);
if (!fix) await run("cargo", ["clippy", "--workspace", "--all-targets", "--profile", "test", "--", "-D", "warnings"]);
