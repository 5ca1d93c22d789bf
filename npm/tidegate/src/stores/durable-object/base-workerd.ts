// Cloudflare Workers: what an object must extend to be called by RPC, and what keeps a request's context alive.
// The namespace, as versions of workerd before August 2025 do not export `waitUntil`.
import * as workers from "cloudflare:workers";
import type { ObjectBaseConstructor } from "./shapes.ts";

export const Base: ObjectBaseConstructor = workers.DurableObject;

/** Keeps the request's context alive until the work is done, after its response too. */
export function during(work: Promise<unknown>): void {
  try {
    workers.waitUntil(work);
  } catch {
    // Outside of any request there is nothing to keep alive; and a workerd without `waitUntil` cannot.
  }
}
