// One worker of a cluster: warms up, waits for the others, and reports its decisions per second.
import { inCluster } from "./contenders.mjs";

const { CONTENDER, FOLDER, MS } = process.env;
const run = inCluster[CONTENDER].worker({ folder: FOLDER });
await run(Number(MS) / 4);
process.on("message", async ({ type }) => {
  if (type !== "go") return;
  const began = performance.now();
  const done = await run(Number(MS));
  process.send({ type: "done", perSecond: (done * 1000) / (performance.now() - began) });
});
process.send({ type: "ready" });
