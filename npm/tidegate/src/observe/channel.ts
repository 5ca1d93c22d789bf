import type { DecisionEvent, Observer } from "./observer.ts";

/** A channel of `node:diagnostics_channel`, by shape. */
export interface DecisionChannel {
  readonly hasSubscribers: boolean;
  publish(event: unknown): void;
}

/**
 * An observer that publishes every decision while somebody listens. The name that is agreed on is `tidegate:decision`.
 *
 * ```ts
 * import { channel } from "node:diagnostics_channel";
 * const limits = observe(defineLimits({ … }), publish(channel("tidegate:decision")));
 * ```
 */
export function publish(channel: DecisionChannel): Observer {
  return (event: DecisionEvent): void => {
    if (channel.hasSubscribers) channel.publish(event);
  };
}
