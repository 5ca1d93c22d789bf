// Cloudflare Workers: a static module, since nothing may be compiled there at run time.
import module from "../engine/generated/policy_bg.wasm";
import { type InitOutput, initSync } from "../engine/generated/policy.js";

export const load = (): InitOutput => initSync({ module });
