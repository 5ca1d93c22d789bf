/** Ms; a timer that is due so much later than the deadline fires after it. */
const SLACK = 50;
/** Ms between two looks at whether this process runs, and by which a timer of one that runs may be late. */
const TICK = 10;
const LATE = 5;

/** Counts the calls that outlive their deadline: by the order in which timers fire, not by the clock of a busy machine. */
export class Deadline {
  /** Calls without an answer after the deadline. */
  late = 0;
  readonly #ms: number;

  constructor(ms: number) {
    this.#ms = ms;
  }

  async of<T>(call: () => PromiseLike<T>): Promise<T> {
    const whole = this.#ms + SLACK;
    let timer: ReturnType<typeof setTimeout> | undefined;
    // After a moment in which this process did not run, the time begins again: the call's own timer may have begun after it.
    const wait = (left: number): void => {
      const due = performance.now() + TICK;
      timer = setTimeout(() => {
        const rest = performance.now() - due < LATE ? left - TICK : whole;
        if (rest > 0) wait(rest);
        else this.late++;
      }, TICK);
    };
    wait(whole);
    try {
      return await call();
    } finally {
      clearTimeout(timer);
    }
  }
}
