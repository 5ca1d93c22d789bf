// `npm start`: sets up, builds, and runs the example server with its playground.
import { build } from "./build.mjs";
import { playground } from "./playground.mjs";
import { run } from "./run.mjs";

build();
playground();
run(process.execPath, ["examples/server/server.mjs", ...process.argv.slice(2)]);
