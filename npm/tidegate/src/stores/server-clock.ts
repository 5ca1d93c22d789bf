/** The server's clock as this process knows it: never behind, so that nothing is taken for too early that is not. */
export class ServerClock {
  #ahead: { ofWall: number; ofSteady: number } | undefined;

  /** Marks the moment before a request leaves. */
  mark(): { readonly wall: number; readonly steady: number } {
    return { wall: Date.now(), steady: performance.now() };
  }

  /** Learns from an answer that the server stamped `now` (whole ms) some time after the mark. */
  learn(mark: { readonly wall: number; readonly steady: number }, now: number): void {
    // It was at the most one ms later on the server, and no earlier than the mark here.
    this.#ahead = { ofWall: now + 1 - mark.wall, ofSteady: now + 1 - mark.steady };
  }

  /** What this process's clock says that it is on the server: a quick look, which a clock that is set back puts off. */
  usual(): number | undefined {
    return this.#ahead === undefined ? undefined : Date.now() + this.#ahead.ofWall;
  }

  /** The latest that it can be on the server, whole ms, or `undefined` before its first answer. It is off by the last
   * round trip at the most. */
  latest(): number | undefined {
    if (this.#ahead === undefined) return undefined;
    const { ofWall, ofSteady } = this.#ahead;
    // Two clocks, as either may stand still or be set back: the later one is the safe one.
    return Math.ceil(Math.max(Date.now() + ofWall, performance.now() + ofSteady));
  }
}
