// In place of source/memory-store.ts.
// @ts-nocheck
import { expressRateLimitStore } from "tidegate/express";

export class MemoryStore {
  constructor() {
    Object.assign(this, expressRateLimitStore());
  }
}
