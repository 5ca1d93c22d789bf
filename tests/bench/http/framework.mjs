// The child: the CPU µs a request of each application of a framework, by round. Requests and responses are those of
// `node:http`, without a socket: what a server does for one costs several times as much as a limiter, and differs by more
// than that between two processes.
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { inRounds } from "../tables.mjs";
import { applications } from "./applications.mjs";

const [framework, rounds, amount] = process.argv.slice(2);
/** Requests under way at a time. */
const TOGETHER = 50;

const socket = Object.defineProperty(new Socket(), "remoteAddress", { value: "192.0.2.1" });

function answered(handle) {
  const request = Object.assign(new IncomingMessage(socket), {
    method: "GET",
    url: "/",
    headers: { host: "a.example" },
  });
  const response = new ServerResponse(request);
  return new Promise((resolve, reject) => {
    // Without a socket it never emits "finish". On the object: Express replaces its prototype.
    response.end = (...body) => {
      ServerResponse.prototype.end.apply(response, body);
      if (response.statusCode === 200) resolve();
      else reject(new Error(`the answer was ${response.statusCode}`));
    };
    handle(request, response);
  });
}

async function measured(handle) {
  const { user } = process.cpuUsage();
  for (let done = 0; done < amount; done += TOGETHER) {
    await Promise.all(Array.from({ length: TOGETHER }, () => answered(handle)));
  }
  return (process.cpuUsage().user - user) / amount;
}

const handlers = {};
for (const [name, make] of Object.entries(applications[framework])) handlers[name] = await make();
for (const handle of Object.values(handlers)) await measured(handle); // warm
const micros = await inRounds(rounds, handlers, measured);
process.send(micros, () => process.exit());
