// `node npm/scripts/loads.mjs linux-x64-gnu`: loads an addon, and calls both of its stores. Requires only Node.js,
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

// What src/stores/addon-store.ts passes: a token bucket of three in 30 s, whose other numbers are absent; take one token.
const [BUCKET, TAKE, OK] = [0, 0, 1];
const THREE_IN_30_SECONDS = [3, 30_000];
const now = Date.now();

/** Three are granted, a fourth is denied for ten seconds. */
function decides(what, numbers) {
  const [store] = numbers;
  numbers.fill(Number.NaN).set(THREE_IN_30_SECONDS);
  const limit = addon.limitNew(store, "api", BUCKET);
  const call = () => {
    numbers.set([now, 1]);
    return addon.decide(limit, TAKE, "ann") & OK;
  };
  for (const wanted of [1, 1, 1, 0]) expect(what, call(), wanted);
  expect(`${what}, retryAt`, numbers[3], now + 10_000);
}

expect("version", addon.version(), version);
decides("shared", addon.openShared(1000));

const place = mkdtempSync(join(tmpdir(), "tidegate-loads-"));
const numbers = addon.openFile(join(place, "limits"), 1000, -1);
const [store] = numbers;
decides("file", numbers);
addon.close(store);
try {
  rmSync(place, { recursive: true, force: true });
} catch {
  // Windows may keep a closed map open for a moment; the system clears its temporary folder.
}
console.log(`${platform} ${version} decides on ${process.version}, ${process.platform} ${process.arch}`);
