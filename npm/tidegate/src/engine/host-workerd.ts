// Cloudflare Workers: a static module, since nothing may be compiled there at run time.
import module from "./generated/small.wasm";
import { type Exports, instantiate } from "./exports.ts";

export const load = (): Exports => instantiate(module);
