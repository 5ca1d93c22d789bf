import type { Admission } from "./gate.ts";

/**
 * Settles once: at the handler's end, or when the client goes away before. `keep` tells a host that ends what nobody
 * waits for (Workers) to wait.
 */
export function settleAtEnd<R>(
  admission: Admission<R>,
  signal: AbortSignal,
  keep: (work: Promise<void>) => void,
): (status: number, error?: unknown) => void {
  if (!admission.settles) return () => {};
  let done = false;
  const settle = (status: number, aborted: boolean, error?: unknown): void => {
    if (done) return;
    done = true;
    signal.removeEventListener("abort", gone);
    keep(admission.settle({ status, aborted, error }));
  };
  const gone = (): void => settle(499, true);
  signal.addEventListener("abort", gone);
  return (status, error) => settle(status, signal.aborted, error);
}
