/** What the store holds for the key that is shown. */
import { useEffect, useRef, useState } from "react";
import type { KeyState, Operation, OperationRequest } from "../src/wire.ts";
import type { Target } from "./key.tsx";
import { Mistake, send } from "./live.ts";
import { clock, number, tokens, wait } from "./text.ts";

/** The key that is shown, and the tokens of its request. */
export interface Shown extends Target {
  readonly count: number;
}

/** ms between two reads. */
const EVERY = 1000;

const requestOf = (operation: Operation, { name, key, count }: Shown, length = ""): OperationRequest => ({
  operation,
  name,
  count,
  ...(key === null ? {} : { key }),
  ...(operation === "block" ? { for: length } : {}),
});

export function nextText({ next, now }: KeyState): string {
  if (next.ok) return "now";
  if (next.retryAt === null) return "never: it is more than the capacity";
  return `in ${wait(next.retryAt - now)}, at ${clock(next.retryAt, { millis: true, today: now })}`;
}

const valueText = ({ value, capacity }: KeyState): string => `${number(value)} of ${tokens(capacity)}`;

/** What changes a key. */
type Change = Exclude<Operation, "read">;

const DONE: Record<Change, (count: number, length: string) => string> = {
  reset: () => "Reset",
  give: (count) => `Gave ${tokens(count)}`,
  charge: (count) => `Charged ${tokens(count)}`,
  block: (_, length) => `Blocked for ${length}`,
};

/** What is known of the key: at first nothing, then its last state, and why the last request failed. */
interface Known {
  readonly state?: KeyState;
  readonly error?: string;
}

export interface ShownState extends Known {
  /** Carries out an operation; `length` is that of a block. */
  act(change: Change, length?: string): Promise<void>;
}

/** Reads the key that is shown each second, while the page is visible. */
export function useKeyState(shown: Shown | undefined, announce: (message: string) => void): ShownState {
  const [known, setKnown] = useState<Known>({});
  /** What is shown now: an answer may arrive when another key is. */
  const current = useRef(shown);
  const failed = (error: unknown): void => setKnown((known) => ({ ...known, error: (error as Error).message }));

  useEffect(() => {
    current.current = shown;
    setKnown({});
    if (shown === undefined) return;
    let isFirst = true;
    const read = async (): Promise<void> => {
      if (document.hidden && !isFirst) return;
      try {
        const state = await send(requestOf("read", shown));
        if (current.current !== shown) return;
        setKnown({ state });
        if (isFirst) announce(`${valueText(state)}. ${tokens(shown.count)} granted: ${nextText(state)}.`);
      } catch (error) {
        if (current.current !== shown) return;
        failed(error);
        if (error instanceof Mistake) clearInterval(timer);
      }
      isFirst = false;
    };
    const timer = setInterval(read, EVERY);
    void read();
    return () => clearInterval(timer);
  }, [shown, announce]);

  const act = async (change: Change, length = ""): Promise<void> => {
    if (shown === undefined) return;
    try {
      const state = await send(requestOf(change, shown, length));
      if (current.current === shown) setKnown({ state });
      announce(`${DONE[change](shown.count, length)}: ${valueText(state)}.`);
    } catch (error) {
      if (current.current === shown) failed(error);
      else announce((error as Error).message);
    }
  };
  return { ...known, act };
}
