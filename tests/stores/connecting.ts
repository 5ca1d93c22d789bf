/** First calls on a client that has yet to connect, as a suite for each store whose client connects at its first call. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { defineLimits, HOUR } from "tidegate";
import type { AsyncStore } from "tidegate/store";
import { LossyProxy } from "../support/proxy.ts";

/** A store on a client that connects to this port, and how to close that client. */
export interface Cold {
  readonly store: AsyncStore;
  close(): unknown;
}

const limits = { cold: { kind: "token bucket", rate: 10, period: HOUR } } as const;
/** Ms. Less than the longest wait for a connection, and longer than any client needs for its call after it. */
const timeout = 1000;

/** Tests that the time in which the client connects to the server on `target` does not count as the call's `timeout`. */
export function connectingSuite(target: () => number, open: (port: number) => Cold): void {
  let proxy: LossyProxy;
  let cold: Cold;
  let release: () => void;
  beforeEach(async () => {
    proxy = await LossyProxy.start(target());
    proxy.gate = new Promise((resolve) => {
      release = resolve;
    });
    vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
    // Which has a timer of its own otherwise: a call that takes a second here would be aborted.
    vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(new DOMException("aborted", "TimeoutError")), ms);
      return controller.signal;
    });
    cold = open(proxy.port);
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
    proxy.stop();
    // Not waited for: some clients close when a reply has come that never will.
    void Promise.resolve(cold.close()).catch(() => {});
  });
  /** Calls of one limiter. */
  function caller() {
    const limiter = defineLimits(limits, { store: cold.store, timeout, log: false });
    return () => limiter.limit("cold", { key: `${proxy.port}` });
  }

  test("calls made while the client connects wait for it, which is not their timeout, and are then decided", async () => {
    const call = caller();
    let settled = 0;
    const counted = () => call().finally(() => settled++);
    const first = counted();
    await vi.advanceTimersByTimeAsync(500);
    const second = counted();
    await vi.advanceTimersByTimeAsync(1400);
    expect(settled).toBe(0);
    release();
    const decisions = await Promise.all([first, second]);
    expect(decisions.map(({ cause, ok }) => [cause, ok])).toEqual([
      [undefined, true],
      [undefined, true],
    ]);
    expect(decisions.map(({ remaining }) => remaining).sort()).toEqual([8, 9]);
    expect(cold.store.connecting).toBeUndefined();
  });

  test("a server that does not answer is waited for 2 s, and then for the call's timeout", async () => {
    let decided = false;
    const first = caller()().finally(() => {
      decided = true;
    });
    await vi.advanceTimersByTimeAsync(2000);
    expect(decided).toBe(false);
    await vi.advanceTimersByTimeAsync(timeout);
    expect(await first).toMatchObject({ ok: false, degraded: true });
  });
}
