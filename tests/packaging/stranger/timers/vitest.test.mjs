import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { timing } from "./limits.mjs";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());
timing({ test, expect, timers: vi });
