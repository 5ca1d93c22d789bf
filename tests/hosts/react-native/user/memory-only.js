// QuickJS alone has no timers, which calls with promises need for their deadlines.
import { inMemory } from "./memory.js";

inMemory().then(
  (report) => print(JSON.stringify(report)),
  (error) => print(`${error?.stack ?? error}`),
);
