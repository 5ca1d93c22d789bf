/** How long a command waits for a server: a person waits, and no request of a client. */
import { afterWaiting } from "../limit/monotonic.ts";

/** ms. */
export const PATIENCE = 10_000;

/** Rejects if `awaited`, such as "connection", takes longer: most clients have no time for it, or a long one. */
export const inTime = <T>(what: string, awaited: PromiseLike<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const cancel = afterWaiting(PATIENCE, () => reject(new Error(`no ${what} within ${PATIENCE / 1000} s`)));
    void awaited.then(resolve, reject).then(cancel);
  });
