/** A server with one limit, and what a component shows of it. */
import { vi } from "vitest";
import { SECOND } from "../../src/index.ts";
import type { RemoteLimits, ServerState } from "../../src/react/remote.ts";
import type { View } from "../../src/react/view.ts";
import { ViewObserver } from "../../src/react/view-observer.ts";

export const config = { kind: "token bucket", rate: 1, period: SECOND, capacity: 5 } as const;

/** A server that keeps one limit, and whose clock is `ahead` of this machine's. */
export function server({ ahead = 0, value = 5 } = {}) {
  const state = { value, ts: Date.now() + ahead };
  const self = { requests: 0, state, fails: undefined as Error | undefined, delay: 0, ahead, load };
  async function load(): Promise<ServerState> {
    self.requests++;
    if (self.delay > 0) await new Promise((done) => setTimeout(done, self.delay));
    if (self.fails !== undefined) throw self.fails;
    const reply = { ...self.state, config, now: Date.now() + self.ahead };
    if (self.delay > 0) await new Promise((done) => setTimeout(done, self.delay));
    return reply;
  }
  return self;
}

export const observing = (from: RemoteLimits, count: number, tick = 1000, initial?: ServerState): ViewObserver =>
  new ViewObserver({ from, name: "message", wish: { count, reserve: false }, tick, initial });

/** A component that shows these fields, and each value that it showed. */
export function show(
  from: RemoteLimits,
  fields: readonly (keyof View)[],
  { count = 1, tick = 1000, initial = undefined as ServerState | undefined } = {},
) {
  const observer = observing(from, count, tick, initial);
  const read = () => fields.map((field) => observer.read(observer.view(), field));
  const shown = [read()];
  const stop = observer.subscribe(() => {
    shown.push(read());
    observer.rendered();
  });
  observer.rendered();
  return { shown, stop, last: () => shown.at(-1) };
}

/** A page, whose visibility `turn` changes. */
export function page() {
  const document = Object.assign(new EventTarget(), { visibilityState: "visible" });
  const window = new EventTarget();
  vi.stubGlobal("document", document);
  vi.stubGlobal("window", window);
  const turn = (state: "visible" | "hidden") => {
    document.visibilityState = state;
    document.dispatchEvent(new Event("visibilitychange"));
  };
  return { turn, window };
}
