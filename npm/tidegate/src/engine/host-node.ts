// Node.js and Bun: the file beside this one, read once.
import { readFileSync } from "node:fs";
import { type Exports, instantiate } from "./exports.ts";

export const load = (): Exports =>
  instantiate(new WebAssembly.Module(readFileSync(new URL("./generated/speed.wasm", import.meta.url))));
