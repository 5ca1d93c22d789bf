import fc from "fast-check";
import { expect, test } from "vitest";
import { advance } from "../page/live.ts";
import { keyOf, printable, wait } from "../page/text.ts";
import { SPAN } from "../src/wire.ts";

test("a key is shown in visible characters, and read back as it was", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (key) => {
      const text = printable(key);
      expect(text).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
      expect(keyOf(text)).toBe(key);
    }),
  );
});

test.each([
  ["user 7", "user 7"],
  [" user  7 ", "\\u{20}user\\u{20} 7\\u{20}"],
  ["évè 日本", "évè 日本"],
  ["a\u202eb", "a\\u{202e}b"],
  ["a\u2066b\u200f", "a\\u{2066}b\\u{200f}"],
  ["a\nb\0", "a\\u{a}b\\u{0}"],
  ["a\u00a0\u3164\u200b", "a\\u{a0}\\u{3164}\\u{200b}"],
  ["\ud800", "\\u{d800}"],
  ["C:\\u{41}", "C:\\\\u{41}"],
  ["\u{10ffff}", "\\u{10ffff}"],
])("%j is shown as %j", (key, shown) => {
  expect(printable(key)).toBe(shown);
  expect(keyOf(shown)).toBe(key);
});

test("a backslash that begins no escape is read unchanged", () => {
  expect(keyOf("a\\b \\u{110000} \\u{}")).toBe("a\\b \\u{110000} \\u{}");
});

test.each([
  [0.2, "1 ms"],
  [999, "999 ms"],
  [999.5, "1.0 s"],
  [1000, "1.0 s"],
  [4200, "4.2 s"],
  [59_960, "1 min 0 s"],
  [60_000, "1 min 0 s"],
  [61_000, "1 min 1 s"],
  [3_600_000, "1 h 0 min"],
  [3_660_000, "1 h 1 min"],
  [48 * 3_600_000, "2 d 0 h"],
  [49 * 3_600_000, "2 d 1 h"],
])("%d ms is %s", (ms, text) => expect(wait(ms)).toBe(text));

test("the counts of ten minutes move on by the seconds that passed", () => {
  const old = Array.from({ length: SPAN }, (_, i) => i);
  // One second later: the second that was not over, and the new one.
  expect(advance(old, 1, [7, 8])).toEqual([...old.slice(1, -1), 7, 8]);
  expect(advance(old, 5, [7, 8])).toEqual([...old.slice(5), 0, 0, 0, 7, 8]);
  expect(advance(old, 10_000, old)).toEqual(old);
});
