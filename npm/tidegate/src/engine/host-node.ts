// Node.js, Bun and Deno: the bytes are in the script, so a bundler cannot lose them. `Buffer` decodes them in one native call.
import type { Exports } from "./exports.ts";
import { initSync } from "./generated/engine.js";
import { WASM_BASE64 } from "./generated/speed-inline.ts";

export const load = (): Exports => initSync({ module: Buffer.from(WASM_BASE64, "base64") });
