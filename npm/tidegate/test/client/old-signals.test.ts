/** Signals and hosts without `reason`, `throwIfAborted` and `DOMException`: React Native, and polyfills. */
import { expect, test, vi } from "vitest";
import { spend } from "../../src/limiter/budget.ts";
import { concurrent, semaphore } from "../../src/client/index.ts";
import { defineLimits } from "../../src/index.ts";

/** A signal as `abort-controller` of npm and React Native's own have it. */
class OldSignal extends EventTarget {
  aborted = false;
  abort(): void {
    this.aborted = true;
    this.dispatchEvent(new Event("abort"));
  }
}
const signalOf = () => {
  const signal = new OldSignal();
  return { signal: signal as unknown as AbortSignal, abort: () => signal.abort() };
};
const aborted = { name: "AbortError", message: "the signal was aborted" };

test.each([true, false])("an abort rejects with an AbortError; DOMException: %s", async (has) => {
  if (!has) vi.stubGlobal("DOMException", undefined);
  const [before, within, after] = [signalOf(), signalOf(), signalOf()];
  before.abort();
  const one = semaphore(1);
  const release = await one.acquire({ signal: after.signal });
  const work = concurrent(() => 1, one);
  const calls = [
    one.acquire({ signal: before.signal }),
    work.with({ signal: before.signal })(),
    one.acquire({ signal: within.signal }),
    work.with({ signal: within.signal })(),
  ];
  within.abort();
  for (const call of calls) await expect(call).rejects.toMatchObject(aborted);
  const cleared = work();
  work.clear();
  await expect(cleared).rejects.toMatchObject({ name: "AbortError", message: "the queue was cleared" });
  release();
});

test("a budget takes such a signal, and stops where it is aborted", async () => {
  const limits = defineLimits({ day: { kind: "token bucket", rate: 10, period: 1000 } });
  const { signal, abort } = signalOf();
  const options = { limits: ["day"], estimate: 1, signal } as const;
  expect(await spend(limits, options, () => 7)).toMatchObject({ ok: true, value: 7 });
  abort();
  await expect(spend(limits, options, () => 7)).rejects.toMatchObject(aborted);
});
