/** Seeded random numbers: one stream for each purpose, so that one more draw for one purpose changes no other. */

/** Returns uniform numbers from 0 up to, but not including, 1. */
export type Random = () => number;

export type Purpose = "demand" | "network" | "faults" | "package" | "experiment";

const PURPOSES: readonly Purpose[] = ["demand", "network", "faults", "package", "experiment"];

/** The stream of a seed for one purpose: sfc32, seeded by splitmix32. */
export function stream(seed: number, purpose: Purpose): Random {
  let mixed = (seed ^ Math.imul(PURPOSES.indexOf(purpose) + 1, 0x9e3779b9)) >>> 0;
  const word = (): number => {
    mixed = (mixed + 0x9e3779b9) | 0;
    let t = mixed ^ (mixed >>> 16);
    t = Math.imul(t, 0x21f0aaad);
    t ^= t >>> 15;
    t = Math.imul(t, 0x735a2d97);
    return (t ^ (t >>> 15)) | 0;
  };
  let [a, b, c, counter] = [word(), word(), word(), 1];
  const next = (): number => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    return sum >>> 0;
  };
  for (let i = 0; i < 12; i++) next();
  return () => (next() * 2 ** 21 + (next() >>> 11)) / 2 ** 53;
}

/** An integer from 0 up to, but not including, `end`. */
export const below = (random: Random, end: number): number => Math.floor(random() * end);

/** The time to the next arrival of a Poisson process, in the unit of 1 / `rate`. */
export const exponential = (random: Random, rate: number): number => -Math.log(1 - random()) / rate;

/** Box and Muller's transform, one of its two values. */
export function logNormal(random: Random, median: number, sigma: number): number {
  if (sigma === 0) return median;
  const radius = Math.sqrt(-2 * Math.log(1 - random()));
  return median * Math.exp(sigma * radius * Math.cos(2 * Math.PI * random()));
}

/**
 * Numbers from 0 to `n` - 1 by Zipf's law, of which 0 is the most frequent; exponent 0 is uniform. Rejection-inversion
 * (Hörmann and Derflinger 1996): constant time for any `n`.
 */
export function zipf(n: number, exponent: number): (random: Random) => number {
  if (exponent === 0 || n === 1) return (random) => below(random, n);
  const integral = (x: number): number => (exponent === 1 ? Math.log(x) : (x ** (1 - exponent) - 1) / (1 - exponent));
  const inverse = (y: number): number =>
    exponent === 1 ? Math.exp(y) : (1 + y * (1 - exponent)) ** (1 / (1 - exponent));
  const least = integral(1.5) - 1;
  const most = integral(n + 0.5);
  const squeeze = 2 - inverse(integral(2.5) - 2 ** -exponent);
  return (random) => {
    for (;;) {
      const y = most + random() * (least - most);
      const x = inverse(y);
      const k = Math.min(Math.max(Math.round(x), 1), n);
      if (k - x <= squeeze || y >= integral(k + 0.5) - k ** -exponent) return k - 1;
    }
  };
}
