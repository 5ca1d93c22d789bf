/** Runs `flush` once all that is ready to run in this turn of the event loop has run, promises included. */
export function afterTurn(flush: () => void): void {
  void settled.then(() => later(flush));
}

const settled = Promise.resolve();
const host = globalThis as {
  process?: { nextTick?: (run: () => void) => void };
  setImmediate?: (run: () => void) => void;
};
// Node, Bun and Deno run a tick when the promises are done, before any I/O; elsewhere a task of its own comes closest.
const later: (run: () => void) => void =
  host.process?.nextTick ?? host.setImmediate ?? ((run) => void setTimeout(run, 0));
