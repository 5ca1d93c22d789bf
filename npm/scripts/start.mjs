// `npm start`: builds what the example server needs, and runs it with its playground.
import { buildForStart } from "./build.mjs";
import { playground } from "./playground.mjs";
import { run } from "./run.mjs";

await buildForStart();
await playground();
await run(process.execPath, ["examples/server/server.mjs", ...process.argv.slice(2)]);
