// Serves the route on plain Node.js: node examples/fetch-handler/server.mjs (PORT chooses the port)
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { GET } from "./route.mjs";

const server = createServer(async ({ method, url, headers }, outgoing) => {
  if (method !== "GET") return outgoing.writeHead(405, { Allow: "GET" }).end();
  try {
    const path = URL.canParse(url, "http://localhost") ? url : "/";
    const response = await GET(new Request(new URL(path, "http://localhost"), { headers }));
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    Readable.fromWeb(response.body).pipe(outgoing);
  } catch (error) {
    console.error(error);
    outgoing.writeHead(500).end();
  }
});
server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
