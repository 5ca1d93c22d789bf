/** The `connecting` of stores whose client connects at its first statement. */
import type { AsyncStore } from "./contract.ts";

/** `store` with the `connecting` of a client that connects at its first statement, which `connect` sends. */
export function connectedBy(connect: () => PromiseLike<unknown>, store: AsyncStore): AsyncStore {
  const connecting = connectingBy(connect);
  return {
    ...store,
    get connecting() {
      return connecting();
    },
  };
}

/**
 * Returns what reads such a `connecting`. The first read calls `connect`, and no later one. If that fails, so does the
 * first call of the limiter, with its own error.
 */
export function connectingBy(connect: () => PromiseLike<unknown>): () => Promise<unknown> | undefined {
  let connecting: Promise<unknown> | undefined;
  let hasEnded = false;
  const ended = (): void => {
    hasEnded = true;
  };
  return () => {
    // A client that throws has failed to connect, too.
    connecting ??= new Promise((resolve) => resolve(connect())).then(ended, ended);
    return hasEnded ? undefined : connecting;
  };
}
