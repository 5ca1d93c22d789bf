/** Calls what only reports something. What it throws, or its promise rejects with, changes nothing: nowhere else can report it. */
export function notify(report: () => unknown): void {
  (async () => report())().catch(() => undefined);
}
