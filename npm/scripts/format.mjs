// `npm run format`: the layout of every file, and what biome can mend safely.
import { run } from "./run.mjs";
import { setup } from "./setup.mjs";

setup();
run("biome", ["check", "--write"]);
run("cargo", ["fmt", "--all"]);
