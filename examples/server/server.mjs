// A server on plain node:http with rate limits by tidegate. `npm start` runs it; PORT chooses the port.
import { createServer } from "node:http";
import { clientIp } from "tidegate/http";
import { read } from "./body.mjs";
import { file } from "./files.mjs";
import { routes } from "./routes.mjs";

const HOST = "127.0.0.1";
const DEFAULT_PORT = 3000;

async function respond(request) {
  // Only the path is used, whatever host name the client sends.
  const url = URL.canParse(request.url, "http://localhost") ? new URL(request.url, "http://localhost") : undefined;
  if (url === undefined) return { status: 400, headers: {}, body: { error: "that is no path" } };
  const route = `${request.method} ${url.pathname}`;
  if (Object.hasOwn(routes, route)) {
    const body = await read(request);
    if ("refused" in body) return body.refused;
    // There is no proxy in front, so no header is trusted. Behind one, use `clientIp(request, { trust: 1 })`.
    return routes[route](url, clientIp(request), body.json);
  }
  const found = request.method === "GET" ? file(url.pathname) : undefined;
  return found ?? { status: 404, headers: {}, body: { error: `there is no ${route}`, routes: Object.keys(routes) } };
}

const server = createServer(async (request, response) => {
  let answer;
  try {
    answer = await respond(request);
  } catch (error) {
    if (request.destroyed && !request.complete) return; // the client disconnected before its request was complete
    console.error(error);
    answer = { status: 500, headers: {}, body: { error: "a mistake of this server's; it is in its log" } };
  }
  request.resume();
  const { status, headers, body } = answer;
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(`${JSON.stringify(body)}\n`);
  response.writeHead(status, { "Content-Type": "application/json", "Content-Length": bytes.length, ...headers });
  response.end(bytes);
});

function fail(message) {
  console.error(`\n${message}`);
  process.exit(1);
}

const wanted = process.env.PORT ?? String(DEFAULT_PORT);
if (!/^\d{1,5}$/.test(wanted) || Number(wanted) > 65_535) {
  fail(`PORT must be an integer from 0 (any free port) to 65535; got ${JSON.stringify(wanted)}`);
}

server.on("error", (error) => {
  if (error.code === "EADDRINUSE" && error.port !== 0) {
    console.log(`Port ${error.port} is taken: looking for a free one. (PORT=... npm start chooses another.)`);
    server.listen(0, HOST);
  } else if (error.code === "EACCES") {
    fail(`Port ${error.port} is not allowed to this user: choose one from 1024 on, as in PORT=8080 npm start`);
  } else {
    fail(`The server cannot listen on ${HOST}:${wanted}: ${error.message}`);
  }
});

server.on("listening", () => {
  const url = `http://${HOST}:${server.address().port}`;
  console.log(`
  tidegate example   ${url}   (a playground: open it in a browser)

  Try, each of them several times in a row:

    curl -i '${url}/api/message?cost=15'
      your own bucket of 20 tokens, one more per second: 200 with RateLimit: "message";r=5;t=5,
      then 429 with Retry-After, and 200 again after that time

    curl -i '${url}/api/trial'
      three for all clients together in each window of 30 seconds: 200, 200, 200, then 429
      until the window's end

    curl -i -X POST '${url}/api/chat?tokens=500'
      500 tokens, 100 more per second, 1000 reserved ahead: 200, then 202 with the time
      at which it may run (runAt), 202 for a later time, then 429

  Ctrl-C stops it.
`);
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => {
    console.log("\nStopped.");
    server.close(() => process.exit(0));
    server.closeAllConnections();
  });
}

server.listen(Number(wanted), HOST);
