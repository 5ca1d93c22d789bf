// `print` is what the shells of Hermes and QuickJS have in place of a console.
import { inMemory } from "./memory.js";
import { onRows } from "./rows.js";

Promise.all([inMemory(), onRows()]).then(
  (reports) => print(JSON.stringify(reports.flat())),
  (error) => print(`${error?.stack ?? error}`),
);
