import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decode, decodeText, encode, encodeText } from "../src/stores/index.ts";
import { readRecord, wellFormed, writeRecord } from "../src/stores/record.ts";

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const numbers = fc.double({ noNaN: true, noDefaultInfinity: true });

/** As written by Python's `struct.pack("<dd", value, ts)`. */
const GOLDEN: [number, number, string, string][] = [
  [1, 2, "000000000000f03f0000000000000040", "1 2"],
  [0, 0, "00000000000000000000000000000000", "0 0"],
  [-0, 0, "00000000000000800000000000000000", "-0 0"],
  [-1.5, 1_735_689_600_000, "000000000000f8bf0000c097f2417942", "-1.5 1735689600000"],
  [0.1, 4_503_599_627_370_496, "9a9999999999b93f0000000000003043", "0.1 4503599627370496"],
  [5e-324, 1, "0100000000000000000000000000f03f", "5e-324 1"],
  [1_099_511_627_776, -1, "0000000000007042000000000000f0bf", "1099511627776 -1"],
];

describe("a state as bytes and as text", () => {
  test.each(GOLDEN)("%d at %d", (value, ts, bytes, text) => {
    expect(hex(encode({ value, ts }))).toBe(bytes);
    expect(encodeText({ value, ts })).toBe(text);
    expect(decode(Buffer.from(bytes, "hex"))).toEqual({ value, ts });
    expect(decodeText(text)).toEqual({ value, ts });
  });

  test("any two numbers are read back to the same bits", () => {
    fc.assert(
      fc.property(numbers, numbers, (value, ts) => {
        for (const read of [decode(encode({ value, ts })), decodeText(encodeText({ value, ts }))]) {
          expect(Object.is(read.value, value) && Object.is(read.ts, ts)).toBe(true);
        }
      }),
    );
  });

  test.each([0, 8, 15, 17, 24])("%d bytes are not a state", (length) => {
    expect(() => decode(new Uint8Array(length))).toThrow(`got ${length} bytes`);
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    "%d is not a number of a state",
    (odd) => {
      expect(() => encode({ value: odd, ts: 0 })).toThrow("`value` must be a finite number");
      expect(() => encodeText({ value: 0, ts: odd })).toThrow("`ts` must be a finite number");
      const bytes = new Uint8Array(16);
      new DataView(bytes.buffer).setFloat64(8, odd, true);
      expect(() => decode(bytes)).toThrow("two finite");
    },
  );

  test.each(["", "1", "1 ", " 1", "1 2 3", "1  2", "1,2", "0x1 2", "NaN 1", "1 Infinity", "1e999 0", "1 2\n"])(
    "%j is not a state",
    (text) => {
      expect(() => decodeText(text)).toThrow(TypeError);
    },
  );

  test("a text that is not a state is in the error", () => {
    expect(() => decodeText("garbage")).toThrow('with a space between; got "garbage"');
  });

  test.each([
    ["no numbers", "x".repeat(1_000_000)],
    ["too large a number", `${"9".repeat(1_000_000)} 1`],
  ])("a long text is shortened in the error: %s", (_, text) => {
    let message = "";
    try {
      decodeText(text);
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message).toContain(`${text.slice(0, 80)}…`);
    expect(message.length).toBeLessThan(250);
  });
});

describe("a record", () => {
  test("is the state's bytes followed by its expiry", () => {
    const bytes = writeRecord({ value: 1, ts: 2 }, 1);
    expect(hex(bytes)).toBe("000000000000f03f0000000000000040000000000000f03f");
    expect(readRecord(bytes)).toEqual({ state: { value: 1, ts: 2 }, dropAt: 1 });
    expect(() => readRecord(bytes.subarray(1))).toThrow("got 23 bytes");
  });
});

describe("an identity as a string without lone surrogates", () => {
  test("is unchanged if it is well-formed", () => expect(wellFormed("a:\u{1f600}\0")).toBe("a:\u{1f600}\0"));

  test("differs from every other identity", () => {
    const keys = fc.string({ unit: fc.constantFrom("\ud83d", "\ude00", "\ufffd", "a", '"') });
    fc.assert(
      fc.property(keys, keys, (a, b) => {
        const [one, two] = [wellFormed(`n:${a}`), wellFormed(`n:${b}`)];
        expect(one === two).toBe(a === b);
        expect(one).not.toMatch(/\p{Surrogate}/u);
      }),
    );
  });
});
