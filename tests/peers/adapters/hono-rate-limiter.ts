// In place of src/stores/memory.ts.
// @ts-nocheck
import { honoRateLimiterStore } from "tidegate/hono";

export class MemoryStore {
  constructor() {
    Object.assign(this, honoRateLimiterStore());
  }
}
