/** The timer of a component: it is there while the component is. */
import { beforeEach, expect, test, vi } from "vitest";
import { SECOND } from "../../src/index.ts";
import { RemoteLimits } from "../../src/react/remote.ts";
import { ViewObserver } from "../../src/react/view-observer.ts";
import { LOCAL, settled, useClocks } from "./clocks.ts";

beforeEach(useClocks);

test("a field that is read when the component is gone starts no timer", async () => {
  const config = { kind: "token bucket", rate: 1, period: SECOND } as const;
  const from = new RemoteLimits(async () => ({ value: 0, ts: LOCAL, now: LOCAL, config }));
  const wish = { count: 1, reserve: false };
  const observer = new ViewObserver({ from, name: "message", wish, tick: SECOND, initial: undefined });
  const stop = observer.subscribe(() => {});
  await settled();
  const view = observer.view();
  stop();
  observer.read(view, "retryAfter");
  observer.rendered();
  await settled();
  expect(vi.getTimerCount()).toBe(0);
});
