// Cloudflare Workers: what an object must extend to be called by RPC.
import { DurableObject } from "cloudflare:workers";
import type { ObjectBaseConstructor } from "./shapes.ts";

export const Base: ObjectBaseConstructor = DurableObject;
