// `print` is what the shells of Hermes and QuickJS have in place of a console. Neither has real timers, which the deadlines of
// stores with promises need, so this runs the store in memory.
import { inMemory } from "./memory.js";

inMemory().then(
  (report) => print(JSON.stringify(report)),
  (error) => print(`${error?.stack ?? error}`),
);
