import { isPending, type Pending } from "./pending.ts";

/**
 * Asks, judges the answer, and then goes on, fails, or does neither (the judge has answered the request): at once where
 * the answer is there. What `go` throws is nobody's here: it is not asked a second time.
 */
export function passage<T>(
  ask: () => Pending<T>,
  judge: (answer: T) => boolean,
  go: () => void,
  fail: (error: unknown) => void,
): void {
  const judged = (answer: T): void => {
    let passes = false;
    try {
      passes = judge(answer);
    } catch (error) {
      fail(error);
      return;
    }
    if (passes) go();
  };
  let answer: Pending<T>;
  try {
    answer = ask();
  } catch (error) {
    fail(error);
    return;
  }
  if (isPending(answer)) answer.then(judged, fail);
  else judged(answer);
}
