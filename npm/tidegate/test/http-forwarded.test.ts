/** The scanner of `Forwarded`: what it reads, and how often it reads a character. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { forwardedFor, fromTheRight, type Scanned } from "../src/http/forwarded.ts";

/** A text that counts the characters that are read of it. */
class Counted implements Scanned {
  reads = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  get length(): number {
    return this.#text.length;
  }

  charCodeAt(index: number): number {
    this.reads++;
    return this.#text.charCodeAt(index);
  }

  slice(from?: number, to?: number): string {
    const part = this.#text.slice(from, to);
    this.reads += part.length;
    return part;
  }
}

/** Texts of about so many characters. */
const HOSTILE: Record<string, (length: number) => string> = {
  blanks: (n) => " ".repeat(n),
  "blanks, then a character": (n) => `${" ".repeat(n)}x`,
  "blanks after a value": (n) => `for=a${" ".repeat(n)}x`,
  "blanks between pairs": (n) => `a=b${" ".repeat(n / 2)};${" ".repeat(n / 2)}=`,
  tabs: (n) => "\t".repeat(n),
  commas: (n) => ",".repeat(n),
  "blanks and commas": (n) => " ,".repeat(n / 2),
  semicolons: (n) => ";".repeat(n),
  "a long name": (n) => "a".repeat(n),
  "a long value": (n) => `for=${"a".repeat(n)}`,
  quotes: (n) => '"'.repeat(n),
  "pairs of an open quote": (n) => 'a="'.repeat(n / 3),
  "an open quote": (n) => `for="${"a".repeat(n)}`,
  backslashes: (n) => "\\".repeat(n),
  "backslashes in quotes": (n) => `for="${"\\".repeat(n)}"`,
  "escaped quotes": (n) => '\\"'.repeat(n / 2),
  "quoted commas": (n) => `for="${",".repeat(n)}"`,
  elements: (n) => "for=a,".repeat(n / 6),
  pairs: (n) => "a=b;".repeat(n / 4),
  "equals signs": (n) => "=".repeat(n),
};

describe("reads each character at most six times:", () => {
  test.each(Object.entries(HOSTILE))("%s", (_, make) => {
    for (const length of [1000, 16_000]) {
      const text = new Counted(make(length));
      for (const _entry of forwardedFor(text)) void _entry;
      expect(text.reads).toBeLessThanOrEqual(6 * text.length + 20);
    }
  });
});

/** The rules as a regular expression, as they were before there was a scanner: right, but quadratic. */
const PAIR = /[ \t]*(?:([^\s=;,"]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*)))?[ \t]*(?:;|$)/y;
function forOf(element: string): string | undefined {
  for (PAIR.lastIndex = 0; PAIR.lastIndex < element.length; ) {
    const pair = PAIR.exec(element);
    if (pair === null) return undefined;
    const [, name, quoted, token] = pair;
    if (name?.toLowerCase() === "for") return quoted?.replace(/\\(.)/g, "$1") ?? token;
  }
  return undefined;
}

test("reads one element as the grammar of RFC 7239 does", () => {
  const part = fc.constantFrom(
    "for",
    "FOR",
    "=",
    ";",
    '"',
    "\\",
    " ",
    "\t",
    "a",
    "192.0.2.1",
    "[2001:db8::1]:80",
    '="',
    '";',
  );
  const element = fc
    .array(part, { maxLength: 14 })
    .map((parts) => parts.join(""))
    // One element alone: with an even number of quotes, and no comma.
    .filter((text) => text.trim() !== "" && !text.includes(","));
  fc.assert(
    fc.property(element, (text) => {
      expect([...forwardedFor(text)]).toEqual([forOf(text.trim())]);
    }),
    { numRuns: 5000 },
  );
});

test("X-Forwarded-For is split into the same entries as by split", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom("a", " ", ",", "\t", "1")).map((parts) => parts.join("")),
      (text) => {
        const expected = text
          .split(",")
          .map((entry) => entry.trim())
          .filter((entry) => entry !== "");
        expect([...fromTheRight(text)]).toEqual(expected.reverse());
      },
    ),
  );
});

test("quotes hide commas, and an escaped quote ends nothing", () => {
  const read = (text: string): unknown[] => [...forwardedFor(text)];
  expect(read('for=192.0.2.1;secret="a,b"')).toEqual(["192.0.2.1"]);
  expect(read('for=192.0.2.1;secret="a,b\\"c"')).toEqual(["192.0.2.1"]);
  expect(read('for=192.0.2.1;secret="a\\\\", for=192.0.2.2')).toEqual(["192.0.2.2", "192.0.2.1"]);
  // Of two escaped backslashes the second escapes no quote: the comma before the quotes still separates.
  const three = 'for=192.0.2.3, for=192.0.2.1;secret="a\\\\", for=192.0.2.2';
  expect(read(three)).toEqual(["192.0.2.2", "192.0.2.1", "192.0.2.3"]);
});

test("empty elements and empty pairs are passed over, and only a pair by the name of `for` is one", () => {
  const read = (text: string): unknown[] => [...forwardedFor(text)];
  expect(read(",for=192.0.2.1, ,,for=192.0.2.2,")).toEqual(["192.0.2.2", "192.0.2.1"]);
  expect(read(";; for=192.0.2.1")).toEqual(["192.0.2.1"]);
  expect(read("fox=192.0.2.1;xfor=192.0.2.2")).toEqual([undefined]);
  for (const name of ["", "\u007f", "\u00e9"]) expect(read(`${name}=1;for=192.0.2.1`), name).toEqual([undefined]);
});
