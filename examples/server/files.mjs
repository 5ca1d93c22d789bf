// The playground's page, as `npm/scripts/playground.mjs` built it from examples/playground.
import { readdirSync, readFileSync } from "node:fs";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";

const dist = fileURLToPath(new URL("../playground/dist/", import.meta.url));

/** Nothing from other hosts, nothing inline; WebAssembly needs its own keyword. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};

/** Every built file, by its path. Other paths are not served, so no path can leave the folder. */
function built() {
  try {
    const names = readdirSync(dist, { recursive: true }).map((name) => String(name).replaceAll("\\", "/"));
    return new Map(names.filter((name) => extname(name) in TYPES).map((name) => [`/${name}`, name]));
  } catch (error) {
    if (error.code === "ENOENT") return new Map();
    throw error;
  }
}

const files = built();
const NOT_BUILT = "The page is not built: `npm start` does it. The routes are there all the same.\n";

/** The file for a path, or `undefined`. */
export function file(path) {
  const name = files.get(path === "/" ? "/index.html" : path);
  if (name === undefined) {
    if (path !== "/") return undefined;
    return { status: 503, headers: { "Content-Type": "text/plain" }, body: Buffer.from(NOT_BUILT) };
  }
  const type = extname(name);
  const headers = { "Content-Type": TYPES[type], "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache" };
  // The names of all others contain a hash of their content.
  if (name.startsWith("assets/")) headers["Cache-Control"] = "public, max-age=31536000, immutable";
  if (type === ".html") headers["Content-Security-Policy"] = POLICY;
  return { status: 200, headers, body: readFileSync(dist + name) };
}
