// The page, and the package itself for the page: the browser projects the two numbers by the same code as the server.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const page = readFileSync(new URL("page.html", import.meta.url), "utf8");
const [, map] = /<script type="importmap">([\s\S]*?)<\/script>/.exec(page);
const mapHash = createHash("sha256").update(map).digest("base64");

/** Nothing from elsewhere; WebAssembly needs its own word. */
const policy = `default-src 'none'; connect-src 'self'; style-src 'self'; img-src data:; script-src 'self' 'wasm-unsafe-eval' 'sha256-${mapHash}'`;

const own = {
  "/": ["page.html", "text/html; charset=utf-8"],
  "/page.js": ["page.js", "text/javascript"],
  "/page.css": ["page.css", "text/css"],
};
const dist = new URL(".", import.meta.resolve("tidegate"));

/** The file for a path, or `undefined`. Of the package only its scripts are served, by names without dots to climb. */
export function file(path) {
  const known = Object.hasOwn(own, path) ? own[path] : undefined;
  const script = /^\/tidegate\/((?:[\w-]+\/)*[\w.-]+\.js)$/.exec(path)?.[1];
  if (known === undefined && script === undefined) return undefined;
  const url = known === undefined ? new URL(script, dist) : new URL(known[0], import.meta.url);
  try {
    const headers = { "Content-Type": known?.[1] ?? "text/javascript", "Cache-Control": "no-cache" };
    if (path === "/") headers["Content-Security-Policy"] = policy;
    return { status: 200, headers, body: readFileSync(fileURLToPath(url)) };
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}
