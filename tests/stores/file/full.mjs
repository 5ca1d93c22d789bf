// Opens a folder, fills the disk with a file if one is named, and takes a token of many keys: node full.mjs <folder> <file>
import { closeSync, openSync, statfsSync, writeSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { defineLimits } from "tidegate";
import { file } from "tidegate/file";

const [path, fills] = process.argv.slice(2);
const store = file(path, { maxKeys: 20_000, sync: 3_600_000 });
const { limit } = defineLimits(
  { one: { kind: "token bucket", rate: 1, period: 3_600_000, capacity: 10 } },
  { store, now: () => 1_800_000_000_000 },
);

function fill() {
  const { bavail, bsize } = statfsSync(path);
  execFileSync("fallocate", ["-l", `${bavail * bsize - (4 << 20)}`, fills]);
  const descriptor = openSync(fills, "a");
  for (let bytes = 1 << 20; bytes >= 512; ) {
    try {
      writeSync(descriptor, Buffer.alloc(bytes));
    } catch (error) {
      if (error.code !== "ENOSPC") throw error;
      bytes /= 2;
    }
  }
  closeSync(descriptor);
}

if (fills !== "") fill();
let allowed = 0;
for (let key = 0; key < 20_000; key++) allowed += Number(limit("one", { key: `${key}` }).ok);
console.log(`${allowed} allowed`);
store.close();
