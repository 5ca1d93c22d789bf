import { isPromise } from "./checks.ts";

/** Calls what only reports something. What it throws, or its promise rejects with, changes nothing: nowhere else can report it. */
export function notify(report: () => unknown): void {
  const ignored = (): void => undefined;
  try {
    const reported = report();
    // No promise where it returns at once: reports of many calls in one turn would all be kept until its end.
    if (isPromise(reported)) reported.then(ignored, ignored);
  } catch {
    ignored();
  }
}
