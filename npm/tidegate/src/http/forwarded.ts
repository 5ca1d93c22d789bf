// Lists of addresses, read from the right: what is at the left was written by the client and may be anything.

/** The entries of `X-Forwarded-For`, the last one first; empty ones are passed over. */
export function* fromTheRight(text: string): Generator<string> {
  for (let end = text.length; end >= 0; ) {
    const comma = end === 0 ? -1 : text.lastIndexOf(",", end - 1);
    const entry = text.slice(comma + 1, end).trim();
    if (entry !== "") yield entry;
    end = comma;
  }
}

/**
 * The `for` of each element of `Forwarded` (RFC 7239), the last one first; `undefined` where an element has none.
 * Quotes are paired from the right as well, so that an open one at the left cannot swallow what a proxy appended.
 */
export function* forwardedFor(text: string): Generator<string | undefined> {
  let quote = false;
  let end = text.length;
  for (let i = text.length - 1; i >= -1; i--) {
    if (i >= 0 && text[i] === '"') {
      let slashes = 0;
      while (text[i - 1 - slashes] === "\\") slashes++;
      if (slashes % 2 === 0) quote = !quote;
      i -= slashes;
    } else if (i < 0 || (text[i] === "," && !quote)) {
      const element = text.slice(i + 1, end).trim();
      if (element !== "") yield forOf(element);
      end = i;
    }
  }
}

const PAIR = /[ \t]*(?:([^\s=;,"]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*)))?[ \t]*(?:;|$)/y;

/** Pair by pair, so that a `for` inside another pair's quotes is not taken for one. */
function forOf(element: string): string | undefined {
  for (PAIR.lastIndex = 0; PAIR.lastIndex < element.length; ) {
    const pair = PAIR.exec(element);
    if (pair === null) return undefined;
    const [, name, quoted, token] = pair;
    if (name?.toLowerCase() === "for") return quoted?.replace(/\\(.)/g, "$1") ?? token;
  }
  return undefined;
}

/** An address without the port and the brackets that may be around it. */
export function withoutPort(text: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text);
  if (bracketed !== null) return bracketed[1] as string;
  return text.replace(/^([\d.]+):\d{1,5}$/, "$1");
}
