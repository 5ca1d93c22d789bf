// React Native and polyfills of signals lack `reason` and `throwIfAborted`, and some hosts have no `DOMException`.

export const abortError = (message: string): Error =>
  typeof DOMException === "undefined"
    ? Object.assign(new Error(message), { name: "AbortError" })
    : new DOMException(message, "AbortError");

/** Why a signal was aborted. */
const reasonOf = ({ reason = abortError("the signal was aborted") }: AbortSignal): unknown => reason;

export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw reasonOf(signal);
}

/** Gives up calls whose signal was aborted: all that it was passed with, together. */
type GiveUp<T> = (calls: ReadonlySet<T>, reason: unknown) => void;

type Add = <T>(giveUp: GiveUp<T>, call: T) => () => void;

const additions = /* @__PURE__ */ new WeakMap<AbortSignal, Add>();

/**
 * Gives a call up when its signal is aborted, unless the returned function was called before, which may be called only once.
 * A signal has one listener, however many calls wait: Node.js warns of a leak at the eleventh.
 */
export function whenAborted<T>(signal: AbortSignal, giveUp: GiveUp<T>, call: T): () => void {
  let add = additions.get(signal);
  if (add === undefined) {
    const all = new Map<GiveUp<never>, Set<unknown>>();
    const aborted = (): void => {
      for (const [giveUp, calls] of all) giveUp(calls as Set<never>, reasonOf(signal));
    };
    add = (giveUp, call) => {
      const calls = all.get(giveUp) ?? new Set();
      all.set(giveUp, calls.add(call));
      return () => {
        calls.delete(call);
        if (calls.size === 0) all.delete(giveUp);
        if (all.size > 0) return;
        additions.delete(signal);
        signal.removeEventListener("abort", aborted);
      };
    };
    additions.set(signal, add);
    signal.addEventListener("abort", aborted);
  }
  return add(giveUp, call);
}
