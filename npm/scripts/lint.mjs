// `npm run lint`: code, formatting, and the spelling and wording of the documents.
import { run } from "./run.mjs";
import { setup } from "./setup.mjs";

setup();
run("biome", ["check", "--error-on-warnings"]);
// cspell.json has the words that are not in a dictionary, and those that this project does not use.
await run("cspell", ["lint", "--no-progress", "--quiet"]);
run("cargo", ["fmt", "--all", "--check"]);
run("cargo", ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
