// React Native and polyfills of signals lack `reason` and `throwIfAborted`, and some hosts have no `DOMException`.

export const abortError = (message: string): Error =>
  typeof DOMException === "undefined"
    ? Object.assign(new Error(message), { name: "AbortError" })
    : new DOMException(message, "AbortError");

/** Why a signal was aborted. */
export const reasonOf = ({ reason = abortError("the signal was aborted") }: AbortSignal): unknown => reason;

export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw reasonOf(signal);
}
