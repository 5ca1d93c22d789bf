/** The simulator's own parts. */
import { expect, test } from "vitest";
import { Events } from "./engine/events.ts";
import { stream, zipf } from "./engine/random.ts";
import { bucket } from "./fleet/cases.ts";
import { jain, rounded } from "./fleet/figures.ts";
import { SpanMeter, SumMeter } from "./fleet/meter.ts";

test("events run by time, and at one time in the order in which they were added", () => {
  const events = new Events();
  const seen: string[] = [];
  const add = (at: number, name: string) => events.add(at, undefined, () => void seen.push(name));
  add(5, "c");
  add(1, "a");
  add(5, "d");
  add(4, "cancelled").run = undefined;
  add(3, "b");
  add(5, "e");
  for (let event = events.next(); event !== undefined; event = events.next()) void event.run?.();
  expect(seen.join("")).toBe("abcde");
});

test("streams of one seed differ by purpose, and are reproducible", () => {
  const draw = (seed: number, purpose: "demand" | "network"): string => {
    const random = stream(seed, purpose);
    return Array.from({ length: 8 }, () => random()).join(" ");
  };
  expect(draw(1, "demand")).toBe(draw(1, "demand"));
  expect(new Set([draw(1, "demand"), draw(1, "network"), draw(2, "demand")]).size).toBe(3);
});

test("keys follow Zipf's law", () => {
  const random = stream(1, "demand");
  const counts = new Float64Array(100);
  const draw = zipf(100, 1);
  const many = 200_000;
  for (let i = 0; i < many; i++) {
    const key = draw(random);
    counts[key] = (counts[key] ?? 0) + 1;
  }
  const harmonic = Array.from({ length: 100 }, (_, i) => 1 / (i + 1)).reduce((sum, part) => sum + part, 0);
  for (const key of [0, 1, 9, 99]) {
    const expected = many / harmonic / (key + 1);
    expect(Math.abs((counts[key] ?? 0) - expected)).toBeLessThan(5 * Math.sqrt(expected));
  }
});

test("a span meter detects a burst that a total does not", () => {
  const limit = bucket(10, 5);
  const [span, sum] = [new SpanMeter(), new SumMeter()];
  expect(span.add(limit, 5, 1_000)).toBe(0);
  // After a quiet minute there are five again, not six hundred.
  expect(span.add(limit, 6, 61_000)).toBe(1);
  expect(sum.add(limit, 11, 1_000, 61_000)).toBeLessThan(0);
  // Returned tokens may be taken again.
  span.remove(limit, 6, 61_000);
  expect(span.add(limit, 5, 61_000)).toBe(0);
});

test("windows earn their tokens at their start", () => {
  const limit = { windows: true, rate: 4, period: 1000, capacity: 4 };
  const span = new SpanMeter();
  expect(span.add(limit, 4, 1_999)).toBe(0);
  expect(span.add(limit, 4, 2_000)).toBe(0);
  expect(span.add(limit, 1, 2_999)).toBe(1);
});

test("Jain's index is 1 for equal values, and 1/n if one has all", () => {
  expect(jain([3, 3, 3])).toBe(1);
  expect(jain([5, 0, 0, 0])).toBe(0.25);
  expect(jain([])).toBe(1);
  expect(Object.is(rounded(-0.00001), 0)).toBe(true);
});
