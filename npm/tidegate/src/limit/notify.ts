/** Calls functions that only report something, such as a log: their errors never change a decision. */
import { isPromise } from "./realms.ts";

const ignored = (): void => undefined;

/**
 * If the result of a report is a promise, ignores its rejection, which cannot be reported anywhere. Otherwise no promise is
 * created: those of many calls in one turn of the event loop would all be kept until its end.
 */
export function ignoreRejection(reported: unknown): void {
  if (isPromise(reported)) reported.then(ignored, ignored);
}

/** Calls a function that only reports something, and ignores its errors and rejections. */
export function notify(report: () => unknown): void {
  try {
    ignoreRejection(report());
  } catch {
    // It cannot be reported anywhere.
  }
}
