/** What a component waits for: only while it is mounted. */
import { beforeEach, expect, test, vi } from "vitest";
import { SECOND } from "../../src/index.ts";
import { RemoteLimits } from "../../src/react/remote.ts";
import { ViewObserver } from "../../src/react/view-observer.ts";
import { LOCAL, passTime, settled, useClocks } from "./clocks.ts";

beforeEach(useClocks);

test("a field that is read when the component is gone starts no timer, and renders nothing", async () => {
  const config = { kind: "token bucket", rate: 1, period: SECOND } as const;
  const from = new RemoteLimits(async () => ({ value: 0, ts: LOCAL, now: LOCAL, config }));
  const wish = { count: 1, reserve: false };
  const observer = new ViewObserver({ from, name: "message", wish, tick: SECOND, initial: undefined });
  const changed = vi.fn();
  const stop = observer.subscribe(changed);
  await settled();
  const view = observer.view();
  observer.read(view, "ok");
  stop();
  passTime(SECOND);
  observer.read(view, "retryAfter");
  observer.rendered();
  await settled();
  expect([vi.getTimerCount(), changed.mock.calls]).toEqual([0, []]);
});
