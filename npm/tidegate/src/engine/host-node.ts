// Node.js and Bun: the file beside this one, read once.
import { readFileSync } from "node:fs";
import type { Exports } from "./exports.ts";
import { initSync } from "./generated/engine.js";

export const load = (): Exports =>
  initSync({ module: readFileSync(new URL("./generated/speed.wasm", import.meta.url)) });
