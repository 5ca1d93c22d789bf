// See host-unwasm.ts of the engine.
import module from "../engine/generated/policy_bg.wasm?module";
import { type InitOutput, initSync } from "../engine/generated/policy.js";

export const load = (): InitOutput => initSync({ module });
