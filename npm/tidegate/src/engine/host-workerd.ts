// Cloudflare Workers: a static module, since nothing may be compiled there at run time.
import module from "./generated/tidegate_bg.wasm";
import { type InitOutput, initSync } from "./generated/tidegate.js";

export const load = (): InitOutput => initSync({ module });
