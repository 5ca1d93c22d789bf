// Cloudflare Workers: a static module, since nothing may be compiled there at run time.
import type { Exports } from "./exports.ts";
import { initSync } from "./generated/engine.js";
import module from "./generated/small.wasm";

export const load = (): Exports => initSync({ module });
