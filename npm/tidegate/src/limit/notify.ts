/** Calls of functions that only report something, such as a log: no error of theirs changes a decision. */
import { isPromise } from "./realms.ts";

const ignored = (): void => undefined;

/**
 * Ignores that the promise of a report rejects, where it is one: nowhere else can report it. No promise is made where it is
 * none: those of many calls in one turn would all be kept until its end.
 */
export function ignoreRejection(reported: unknown): void {
  if (isPromise(reported)) reported.then(ignored, ignored);
}

/** Calls what only reports something. What it throws, or its promise rejects with, changes nothing. */
export function notify(report: () => unknown): void {
  try {
    ignoreRejection(report());
  } catch {
    // As above.
  }
}
