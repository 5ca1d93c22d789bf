// Cloudflare Workers forbid compilation at run time: a static module.
import module from "../engine/generated/policy_bg.wasm";
import { type InitOutput, initSync } from "../engine/generated/policy.js";

export const load = (): InitOutput => initSync({ module });
