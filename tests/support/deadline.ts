/** Ms; a timer that is due so much later than the deadline fires after it, however busy the machine. */
const SLACK = 50;

/** Counts the calls that outlive their deadline: by the order in which timers fire, not by the clock of a busy machine. */
export class Deadline {
  /** Calls without an answer after the deadline. */
  late = 0;
  readonly #ms: number;

  constructor(ms: number) {
    this.#ms = ms;
  }

  async of<T>(call: () => PromiseLike<T>): Promise<T> {
    const due = performance.now() + this.#ms;
    // A process that was busy at the deadline waits as long again as it was late.
    let timer = setTimeout(() => {
      timer = setTimeout(() => this.late++, SLACK + performance.now() - due);
    }, this.#ms);
    try {
      return await call();
    } finally {
      clearTimeout(timer);
    }
  }
}
