/** Animation: one loop for everything that follows the clock, with fewer frames for reduced motion. */
import { useEffect, useRef, useSyncExternalStore } from "react";
import type { Lab } from "../model/lab.ts";

const calm = matchMedia("(prefers-reduced-motion: reduce)");
const CALM_MS = 500;
const drawers = new Set<(clock: number) => void>();
let last = 0;

function frame(time: number): void {
  if (!calm.matches || time - last >= CALM_MS) {
    last = time;
    const clock = Date.now();
    for (const draw of drawers) draw(clock);
  }
  if (drawers.size > 0) requestAnimationFrame(frame);
}

/** Calls the latest `draw` on each frame, with that frame's time: everything shows the same time. */
export function useFrames(draw: (clock: number) => void): void {
  const latest = useRef(draw);
  latest.current = draw;
  useEffect(() => {
    const run = (clock: number): void => latest.current(clock);
    drawers.add(run);
    if (drawers.size === 1) requestAnimationFrame(frame);
    return () => void drawers.delete(run);
  }, []);
}

const TELL_MS = 200;

/** Renders again when the lab has changed, but not more often than a person can read. */
export function useLab(lab: Lab): number {
  const store = useRef<{ version: number; subscribe: (changed: () => void) => () => void }>(undefined);
  store.current ??= {
    version: 0,
    subscribe(changed) {
      let waiting: ReturnType<typeof setTimeout> | undefined;
      const leave = lab.subscribe(() => {
        waiting ??= setTimeout(() => {
          waiting = undefined;
          (store.current as { version: number }).version++;
          changed();
        }, TELL_MS);
      });
      return () => {
        clearTimeout(waiting);
        leave();
      };
    },
  };
  const { subscribe } = store.current;
  return useSyncExternalStore(subscribe, () => (store.current as { version: number }).version);
}
