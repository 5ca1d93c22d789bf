import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { timing } from "./limits.mjs";

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());
timing({ test, expect, timers: jest });
