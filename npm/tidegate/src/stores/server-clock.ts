/** An estimate of the server's clock that is never behind it, so that no call is denied that the server would grant. */

/** How much two clocks may drift apart in a ms: twice what a clock is slewed at the most. */
const DRIFT = 1 / 1000;

/** The moment before a request left, by the wall clock (whole ms) and by the monotonic one. */
export interface Moment {
  readonly wall: number;
  readonly monotonic: number;
}

export class ServerClock {
  /** The most that the server's clock is ahead of the monotonic one here, and when that was learned, by the latter. */
  #ahead: number | undefined;
  #at = 0;
  /** By how many whole ms it is ahead of the wall clock here. */
  #aheadOfWall = 0;

  /** Marks the moment before a request leaves. */
  mark(): Moment {
    return { wall: Date.now(), monotonic: performance.now() };
  }

  /** Learns from an answer that the server stamped `now` (whole ms) some time after the mark. */
  learn(mark: Moment, now: number): void {
    const monotonic = performance.now();
    // It was before `now` + 1 on the server, no earlier than the mark, and no later than this moment.
    const most = now + 1 - mark.monotonic;
    const least = now - monotonic;
    const known = this.#most(mark.monotonic);
    // Every answer narrows it down. A bound that this answer contradicts is from before a clock was set.
    const narrower = known !== undefined && known > least && known < most;
    this.#ahead = narrower ? known : most;
    this.#aheadOfWall = narrower ? Math.min(this.#aheadOfWall, now - mark.wall) : now - mark.wall;
    this.#at = mark.monotonic;
  }

  /** The server's clock by this process's wall clock: quick, and too early if that clock is set back. */
  usual(): number | undefined {
    return this.#ahead === undefined ? undefined : Date.now() + this.#aheadOfWall;
  }

  /**
   * The latest that it can be on the server, whole ms, or `undefined` before its first answer. It is ahead of the server
   * by at most the shortest of the last round trips.
   */
  latest({ wall, monotonic }: Moment = this.mark()): number | undefined {
    const ahead = this.#most(monotonic);
    if (ahead === undefined) return undefined;
    // It is before monotonic + ahead there. Two clocks, as either may stand still or be set back: the later one is safe.
    return Math.max(wall + this.#aheadOfWall, Math.ceil(monotonic + ahead) - 1);
  }

  #most(monotonic: number): number | undefined {
    return this.#ahead === undefined ? undefined : this.#ahead + Math.max(monotonic - this.#at, 0) * DRIFT;
  }
}
