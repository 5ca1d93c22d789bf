// The page and the package's files, as they are: node examples/browser/server.mjs (PORT chooses the port)
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

const page = new URL("page.html", import.meta.url);
const dist = new URL(".", import.meta.resolve("tidegate"));

const server = createServer(async ({ url }, response) => {
  const [, path] = /^\/tidegate\/(\w[\w/-]*\.js)$/.exec(url) ?? [];
  const [file, type] = path === undefined ? [page, "text/html"] : [new URL(path, dist), "text/javascript"];
  try {
    const content = await readFile(fileURLToPath(file));
    response.writeHead(200, { "Content-Type": type }).end(content);
  } catch {
    response.writeHead(404).end();
  }
});
server.listen(Number(process.env.PORT ?? 8787), "127.0.0.1", () => {
  console.log(`open http://127.0.0.1:${server.address().port}/`);
});
