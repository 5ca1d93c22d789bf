// Cloudflare Workers: what an object must extend to be called by RPC.
import { DurableObject, waitUntil } from "cloudflare:workers";
import type { ObjectBaseConstructor } from "./shapes.ts";

export const Base: ObjectBaseConstructor = DurableObject;

/** Keeps the request's context alive until the work is done, after its response too. */
export function during(work: Promise<unknown>): void {
  try {
    waitUntil(work);
  } catch {
    // Outside of any request there is nothing to keep alive.
  }
}
