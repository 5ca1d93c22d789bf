// The child: one server; reports its CPU time outside the kernel on request.
import { servers } from "./servers.mjs";

const [framework, contender] = process.argv.slice(2);
const port = await servers[framework][contender]();
process.on("message", () => {
  const { user } = process.cpuUsage();
  process.send({ micros: user });
});
process.on("disconnect", () => process.exit());
process.send({ port });
