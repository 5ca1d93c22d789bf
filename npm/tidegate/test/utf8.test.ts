import { expect, test, vi } from "vitest";
import { generalizedUtf8, utf8Length } from "../src/engine/utf8.ts";

test("encodes every code point but surrogates as TextEncoder does", () => {
  const encoder = new TextEncoder();
  let text = "";
  for (let point = 0; point <= 0x10ffff; point += point < 0x900 ? 1 : 97) {
    if (point < 0xd800 || point > 0xdfff) text += String.fromCodePoint(point);
  }
  text += "\uffff\u{10000}\u{10ffff}";
  expect(Buffer.compare(generalizedUtf8(text), encoder.encode(text))).toBe(0);
  expect(utf8Length(text)).toBe(encoder.encode(text).length);
});

test("encodes each lone surrogate as three bytes of its own", () => {
  expect([...generalizedUtf8("\ud800")]).toEqual([0xed, 0xa0, 0x80]);
  expect([...generalizedUtf8("a\udfffb")]).toEqual([0x61, 0xed, 0xbf, 0xbf, 0x62]);
  // High before low is one character; low before high is two surrogates.
  expect(utf8Length("\ud83d\ude00")).toBe(4);
  expect(utf8Length("\ude00\ud83d")).toBe(6);
});

test("the Redis store is imported where there is no TextEncoder, as in Jest's jsdom", async () => {
  vi.stubGlobal("TextEncoder", undefined);
  vi.resetModules();
  expect((await import("../src/stores/redis.ts")).redis).toBeTypeOf("function");
});
