// `print` is what the shells of Hermes and QuickJS have in place of a console. Neither has real timers, which the deadlines of
// stores with promises need, so this runs the store in memory, and what waits by a clock of the test.
import { inMemory } from "./memory.js";
import { waits } from "./waits.js";

(async () => [...(await inMemory()), ...(await waits())])().then(
  (report) => print(JSON.stringify(report)),
  (error) => print(`${error?.stack ?? error}`),
);
