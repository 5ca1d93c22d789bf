// A page in React with a limited button: node examples/react/server.mjs (PORT chooses the port)
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { defineLimits, SECOND } from "tidegate";
import { clientIp, rateLimitHeaders, statusOf } from "tidegate/http";

const limits = defineLimits({ message: { kind: "token bucket", rate: 1, period: 3 * SECOND, capacity: 3 } });

const html = `<!doctype html><html lang="en"><meta charset="utf-8"><title>tidegate: React</title>
<link rel="icon" href="data:,"><main></main><script src="/app.js"></script>`;
const app = await build({
  entryPoints: [fileURLToPath(new URL("app.jsx", import.meta.url))],
  bundle: true,
  write: false,
  jsx: "automatic",
  tsconfigRaw: {}, // without this repository's tsconfig.json
});

const server = createServer((request, response) => {
  const send = (status, type, body, headers = {}) =>
    response.writeHead(status, { "Content-Type": type, ...headers }).end(body);
  const key = clientIp(request);
  switch (`${request.method} ${request.url}`) {
    case "GET /":
      return send(200, "text/html", html);
    case "GET /app.js":
      return send(200, "text/javascript", app.outputFiles[0].text);
    case "GET /limits/message":
      return send(200, "application/json", JSON.stringify({ ...limits.getValue("message", { key }), now: Date.now() }));
    case "POST /messages": {
      const decision = limits.limit("message", { key });
      return send(statusOf(decision), "application/json", JSON.stringify(decision), rateLimitHeaders(decision));
    }
    default:
      return send(404, "text/plain", "not found\n");
  }
});
server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
