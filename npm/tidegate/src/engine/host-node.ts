// Node.js and Bun: the file beside this one, read once.
import { readFileSync } from "node:fs";
import { type InitOutput, initSync } from "./generated/tidegate.js";

export const load = (): InitOutput =>
  initSync({ module: readFileSync(new URL("./generated/tidegate_bg.wasm", import.meta.url)) });
