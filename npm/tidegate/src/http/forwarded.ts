// Lists of addresses, read from the right: what is at the left was written by the client and may be anything.

/** The entries of `X-Forwarded-For`, the last one first; empty ones are passed over. */
export function* fromTheRight(text: string): Generator<string> {
  for (let end = text.length; end > 0; ) {
    const comma = text.lastIndexOf(",", end - 1);
    const entry = text.slice(comma + 1, end).trim();
    if (entry !== "") yield entry;
    end = comma;
  }
}

/** The part of a string that the scanner below reads, so that a test can count its reads. */
export type Scanned = Pick<string, "length" | "charCodeAt" | "slice">;

const [QUOTE, COMMA, SEMICOLON, EQUALS, BACKSLASH] = [0x22, 0x2c, 0x3b, 0x3d, 0x5c];
const isBlank = (code: number): boolean => code === 0x20 || code === 0x09;
/** Visible ASCII without separators: wider than RFC 9110's token, as senders leave addresses with colons unquoted. */
const isPlain = (code: number): boolean =>
  code > 0x20 && code < 0x7f && code !== QUOTE && code !== COMMA && code !== SEMICOLON;

/**
 * The `for` of each element of `Forwarded` (RFC 7239), the last one first; `undefined` if an element has none.
 * Quotes are paired from the right as well, so that an open one at the left cannot swallow what a proxy appended. Each
 * character is read a bounded number of times, whatever a client writes.
 */
export function* forwardedFor(text: Scanned): Generator<string | undefined> {
  let quoted = false;
  let end = text.length;
  for (let i = text.length - 1; i >= -1; i--) {
    const code = i < 0 ? COMMA : text.charCodeAt(i);
    if (code === QUOTE) {
      let slashes = 0;
      while (text.charCodeAt(i - 1 - slashes) === BACKSLASH) slashes++;
      if (slashes % 2 === 0) quoted = !quoted;
      i -= slashes;
    } else if (code === COMMA && (i < 0 || !quoted)) {
      const start = afterBlanks(text, i + 1);
      if (start < end) yield forOf(text, start, end);
      end = i;
    }
  }
}

/** Ends with the element at the latest, as a comma or the text's end follows it. */
function afterBlanks(text: Scanned, from: number): number {
  let at = from;
  while (isBlank(text.charCodeAt(at))) at++;
  return at;
}

/** Pair by pair, so that a `for` inside another pair's quotes is not taken for one. */
function forOf(text: Scanned, from: number, end: number): string | undefined {
  for (let at = from; at < end; at++) {
    at = afterBlanks(text, at);
    const start = at;
    while (isPlain(text.charCodeAt(at)) && text.charCodeAt(at) !== EQUALS) at++;
    let found: string | undefined;
    if (at > start) {
      if (text.charCodeAt(at) !== EQUALS) return undefined;
      const valueEnd = endOfValue(text, at + 1, end);
      if (valueEnd === undefined) return undefined;
      if (text.slice(start, at).toLowerCase() === "for") found = unquoted(text.slice(at + 1, valueEnd));
      at = valueEnd;
    }
    at = afterBlanks(text, at);
    if (at < end && text.charCodeAt(at) !== SEMICOLON) return undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Where a token or a quoted string ends; `undefined` if a quote stays open. */
function endOfValue(text: Scanned, from: number, end: number): number | undefined {
  let at = from;
  if (text.charCodeAt(at) === QUOTE) {
    for (at++; at < end; at++) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) return at + 1;
      if (code === BACKSLASH) at++;
    }
    return undefined;
  }
  while (isPlain(text.charCodeAt(at))) at++;
  return at;
}

const unquoted = (value: string): string =>
  value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, "$1") : value;

/** An address without the port and the brackets that may be around it. */
export function withoutPort(text: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text);
  if (bracketed !== null) return bracketed[1] as string;
  return text.replace(/^([\d.]+):\d{1,5}$/, "$1");
}
