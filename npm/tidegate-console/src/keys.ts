/** How the page names keys. */
import type { Config, Limiter, Store } from "tidegate";

/** The limits whose keys the page reads and changes, and the text of each key. */
export interface ConsoleKeys {
  /** Of the limits whose keys can be read and changed. Read again each second: they may change. */
  readonly names: readonly string[];
  /** The limiter's options for a key in the page's text; `undefined` is none. Throws an `InputError` for a wrong one. */
  target(name: string, text: string | undefined): { readonly key?: string; readonly config?: Config };
  /** The text of a limiter's key. If it throws, the page has the key itself. */
  text(name: string, key: string): string;
}

/** The limits that a limiter defines, whose keys are shown as they are. */
export const ownKeys = (limiter: Limiter<string, Store>): ConsoleKeys => ({
  names: limiter?.names ?? [],
  target: (_, text) => (text === undefined ? {} : { key: text }),
  text: (_, key) => key,
});
