/**
 * A call that a queue did not take, or gave up: it was `"full"`, it takes no more since `drain()` (`"closed"`), or the
 * call's time would have come too late for its `maxWait` (`"late"`).
 */
export class QueueError extends Error {
  override readonly name = "QueueError";
  readonly code = "TIDEGATE_QUEUE";
  readonly reason: "full" | "closed" | "late";
  /** Epoch ms at which the call would have run, where it is known. */
  readonly at: number | undefined;

  constructor(reason: QueueError["reason"], message: string, at?: number) {
    super(message);
    this.reason = reason;
    this.at = at;
  }
}

/** Whether it is a {@link QueueError}, by its code: copies of the package and other realms count. */
export const isQueueError = (error: unknown): error is QueueError =>
  typeof error === "object" && error !== null && (error as { code?: unknown }).code === "TIDEGATE_QUEUE";
