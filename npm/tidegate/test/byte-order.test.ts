/** A big-endian processor, such as s390x: the engine's numbers would be read in the wrong order. */
import { beforeEach, expect, test, vi } from "vitest";

const BIG_ENDIAN = "Tidegate needs a little-endian processor, such as x64 or arm64; this one is big-endian";

beforeEach(() => {
  vi.resetModules();
  return () => vi.unstubAllGlobals();
});

/** How such a processor keeps the number 1. */
const bigEndian = () =>
  vi.stubGlobal(
    "Uint16Array",
    class {
      readonly buffer = Uint8Array.of(0, 1).buffer;
    },
  );

test("on a big-endian processor the engine throws as it loads", async () => {
  bigEndian();
  const { load } = await import("../src/engine/host-node.ts");
  expect(load).toThrow(BIG_ENDIAN);
});

test("on a big-endian processor tidegate/pure does not load: it would mix up keys", async () => {
  bigEndian();
  await expect(import("../src/pure.ts")).rejects.toThrow(BIG_ENDIAN);
});

test("on this processor, which is little-endian, the engine loads", async () => {
  const { load } = await import("../src/engine/host-node.ts");
  expect(load).not.toThrow();
});
