/** Serves the built site: files and nothing else. */
import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { root } from "../readme/blocks.ts";

export const dist: string = join(root, "npm/site/dist");

const TYPES: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".json": "application/json",
  ".wasm": "application/wasm",
  ".woff2": "font/woff2",
};

/** The file of a path, or `undefined`. */
export function fileOf(pathname: string): string | undefined {
  const path = normalize(join(dist, decodeURIComponent(pathname)));
  if (!path.startsWith(dist)) return undefined;
  const candidates = [path, join(path, "index.html"), `${path}.html`];
  return candidates.find((file) => existsSync(file) && statSync(file).isFile());
}

export async function serve(): Promise<{ url: string; close(): void }> {
  const server = createServer((request, response) => {
    const file = fileOf(new URL(request.url ?? "/", "http://localhost").pathname);
    if (file === undefined) return void response.writeHead(404).end();
    response.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "application/octet-stream" });
    createReadStream(file).pipe(response);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}
