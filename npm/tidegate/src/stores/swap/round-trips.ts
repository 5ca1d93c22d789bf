/** How long round trips to the database take. */
export type RoundTripsByKind = Readonly<Record<"read" | "write", RoundTrips>>;

/** The round trips of one kind. */
export class RoundTrips {
  /** Ms of the last one, and of an earlier one that was not under way while none ended. */
  #times: readonly [number, number] = [0, 0];
  /** When the last one ended (`performance.now()`, ms, as the times below). */
  ended: number = -Infinity;
  /** When one ended after none had for half of its time. */
  #resumed: number = -Infinity;
  /** When the one that ended last was sent. */
  #sent: number = -Infinity;

  /** Ms. While none ends, all that are under way may be waiting for a connection, or for this process. */
  get usual(): number {
    return Math.min(...this.#times);
  }

  add(sent: number): void {
    const now = performance.now();
    const ms = now - sent;
    const [last, before] = this.#times;
    // A later one took less than half of its time: this one waited for something else, as a write does for a lock.
    if (sent < this.#sent && ms > 2 * last) return;
    this.#sent = sent;
    if (now - this.ended > ms / 2) {
      this.#resumed = now;
      this.#times = [ms, last];
    } else this.#times = [ms, sent < this.#resumed ? before : ms];
    this.ended = now;
  }
}
