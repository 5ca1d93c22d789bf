import { InputError } from "../limit/errors.ts";
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
 *
 * Throws an `InputError` where `channel` is no channel.
 */
export function publish(channel: DecisionChannel): Observer {
  if (typeof (channel as Partial<DecisionChannel> | null | undefined)?.publish !== "function") {
    throw new InputError(
      "channel",
      'a channel of node:diagnostics_channel, such as channel("tidegate:decision")',
      channel,
    );
  }
  return (event: DecisionEvent): void => {
    if (channel.hasSubscribers) channel.publish(event);
  };
}
