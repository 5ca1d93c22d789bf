// Serves the route on plain Node.js: node examples/fetch-handler/server.ts (Node.js 22.18 or newer)
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { GET } from "./route.ts";

const server = createServer(async ({ method, url = "/", headers }, outgoing) => {
  if (method !== "GET") return outgoing.writeHead(405, { Allow: "GET" }).end();
  try {
    const path = URL.canParse(url, "http://localhost") ? url : "/";
    const request = new Request(new URL(path, "http://localhost"), { headers: headers as Record<string, string> });
    const response = await GET(request);
    outgoing.writeHead(response.status, Object.fromEntries(response.headers)).end(await response.text());
  } catch (error) {
    console.error(error);
    outgoing.writeHead(500).end();
  }
});
server.listen(Number(process.env["PORT"] ?? 3000), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
