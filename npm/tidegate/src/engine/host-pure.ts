// Hosts without WebAssembly (React Native's Hermes, Convex's runtime, pages whose policy forbids it): the small build as
// plain JavaScript. It needs neither `eval` nor BigInt.
import type { Exports } from "./exports.ts";
import { instantiate } from "./generated/pure.js";

export const load = (grown: () => void): Exports => instantiate(grown);
