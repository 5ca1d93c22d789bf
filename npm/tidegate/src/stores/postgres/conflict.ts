/** Statements that lost against another and were undone as a whole: only these are ever sent again. */

const SERIALIZATION_FAILURE = "40001";
const DEADLOCK_DETECTED = "40P01";
const MOST_TRIES = 10;
/** ms; the wait is drawn evenly from 0 to twice as much each time, and never above the last. */
const FIRST_WAIT = 2;
const MOST_WAIT = 50;

/** Whether the server says that it undid the statement for another's sake. */
export function retryable(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === SERIALIZATION_FAILURE || code === DEADLOCK_DETECTED;
}

/** Waits before the next try. `false`: there have been enough, or no time is left until then (`performance.now()`). */
export async function pause(tries: number, until: number): Promise<boolean> {
  if (tries >= MOST_TRIES) return false;
  const wait = Math.random() * Math.min(MOST_WAIT, FIRST_WAIT * 2 ** tries);
  if (performance.now() + wait >= until) return false;
  await new Promise((resolve) => setTimeout(resolve, wait));
  return true;
}
