// `node npm/scripts/loads.mjs linux-x64-gnu`: loads an addon, and calls both of its tables. Requires only Node.js,
// `npm/scripts` and the platform's folder.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const [platform = ""] = process.argv.slice(2);
const folder = new URL(`../${platform}/`, import.meta.url);
const { main, version } = JSON.parse(readFileSync(new URL("package.json", folder), "utf8"));
const addon = createRequire(import.meta.url)(fileURLToPath(new URL(main, folder)));

function expect(what, got, wanted) {
  if (got !== wanted) throw new Error(`${platform}: ${what}: wanted ${wanted}, got ${got}`);
}

const numbers = new Float64Array(new ArrayBuffer(64));
// The arguments of src/engine: a token bucket without optional fields; take one token; the lowest bit is `ok`.
const [BUCKET, NONE_GIVEN, TAKE, OK] = [0, 0, 0, 1];
const THREE_IN_30_SECONDS = [3, 30_000];
const now = Date.now();

/** Three are granted, and a fourth ten seconds later. */
function answers(table, decide) {
  const call = () => {
    numbers.set([now, 1]);
    return decide() & OK;
  };
  for (const wanted of [1, 1, 1, 0]) expect(table, call(), wanted);
  expect(`${table}, retryAt`, numbers[3], now + 10_000);
}

expect("version", addon.version(), version);
addon.open(numbers, 1000);
numbers.set(THREE_IN_30_SECONDS);
const limit = addon.limitNew("api", BUCKET, NONE_GIVEN);
answers("memory", () => addon.decide(limit, TAKE, "ann"));

const place = mkdtempSync(join(tmpdir(), "tidegate-loads-"));
const store = addon.fileOpen(numbers, join(place, "limits"), 1000, -1);
numbers.set(THREE_IN_30_SECONDS);
const inFile = addon.fileLimitNew(store, "api", BUCKET, NONE_GIVEN);
answers("file", () => addon.fileDecide(inFile, TAKE, "ann", store));
addon.fileClose(store);
try {
  rmSync(place, { recursive: true, force: true });
} catch {
  // Windows may keep a closed map open for a moment; the system clears its temporary folder.
}
console.log(`${platform} ${version} answers on ${process.version}, ${process.platform} ${process.arch}`);
