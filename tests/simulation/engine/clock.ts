/** A process's two clocks: the wall clock, which can be set, and the steady clock. */
import type { Process } from "./events.ts";
import { EPOCH_MS, MS } from "./world.ts";

export class Life implements Process {
  alive = true;
  /** ms that the wall clock is ahead. */
  offset = 0;
  /** How much faster both clocks run than they should: a fraction. */
  drift = 0;

  wall(us: number): number {
    return Math.floor(EPOCH_MS + this.offset + this.steady(us));
  }

  steady(us: number): number {
    return (us / MS) * (1 + this.drift);
  }
}
