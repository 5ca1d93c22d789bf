import { afterEach, expect, test, vi } from "vitest";
import * as ours from "../../src/engine/glue-text.ts";

afterEach(() => {
  vi.resetModules();
});

const DOCUMENT = { rules: [{ name: "é€𝄞", algorithm: "\ud800" }] };

test("documents are checked where the host has no TextDecoder, as in Jest's jsdom", async () => {
  const load = async () => {
    vi.resetModules();
    return (await import("../../src/policies/check.ts")).checkPolicies(DOCUMENT);
  };
  const expected = await load();
  vi.stubGlobal("TextDecoder", undefined);
  vi.stubGlobal("TextEncoder", undefined);
  expect(await load()).toEqual(expected);
  expect(JSON.stringify(expected)).toContain("é€𝄞");
});

test.each(["", "plain", "\0\x7f\x80é߿ࠀ€￿𝄞\u{10ffff}", "\ufeffmark", "lone \ud800 and \udc00"])(
  "%j is encoded and decoded as by the host",
  (text) => {
    const bytes = new TextEncoder().encode(text);
    expect(new ours.TextEncoder().encode(text)).toEqual(bytes);
    expect(new ours.TextDecoder().decode(bytes)).toBe(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes));
  },
);
