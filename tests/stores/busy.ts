/** A process that is busy for longer than the deadlines of its calls. */
import { expect } from "vitest";
import { defineLimits } from "tidegate";
import type { AsyncStore } from "tidegate/store";

/** Calls made in one turn, and not sent in time, fail alone: the store has not failed. */
export async function busyIsNoOutage(store: AsyncStore): Promise<void> {
  const bucket = { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 1e9 } as const;
  const lines: string[] = [];
  const log = { error: (line: string) => void lines.push(line), info: (line: string) => void lines.push(line) };
  const limits = defineLimits(
    { hasty: { ...bucket, timeout: 50 }, patient: { ...bucket, timeout: 60_000 } },
    { store, log },
  );
  expect((await limits.limit("patient")).degraded).toBeUndefined();
  const late = Promise.all(Array.from({ length: 20 }, (_, i) => limits.limit("hasty", { key: `${i}` })));
  const until = performance.now() + 60;
  while (performance.now() < until);
  expect((await late).map(({ degraded }) => degraded)).toEqual(Array(20).fill(true));
  expect((await limits.limit("patient")).degraded).toBeUndefined();
  expect(lines).toEqual([expect.stringMatching(/process was busy; nothing was taken; calls on this key are denied/)]);
}
