// `npm start`: sets up, builds, and runs the example server.
import { build } from "./build.mjs";
import { run } from "./run.mjs";

build();
run(process.execPath, ["examples/server/server.mjs", ...process.argv.slice(2)]);
