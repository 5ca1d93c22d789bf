// Written here, since the platform's own returns a promise, and @noble/hashes is five times the size in a bundle. The
// tests compare it with that of Node.js.

/** The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, section 4.2.2). */
const PRIMES =
  "428a2f9871374491b5c0fbcfe9b5dba53956c25b59f111f1923f82a4ab1c5ed5d807aa9812835b01243185be550c7dc372be5d7480deb1fe" +
  "9bdc06a7c19bf174e49b69c1efbe47860fc19dc6240ca1cc2de92c6f4a7484aa5cb0a9dc76f988da983e5152a831c66db00327c8bf597fc7" +
  "c6e00bf3d5a7914706ca63511429296727b70a852e1b21384d2c6dfc53380d13650a7354766a0abb81c2c92e92722c85a2bfe8a1a81a664b" +
  "c24b8b70c76c51a3d192e819d6990624f40e3585106aa07019a4c1161e376c082748774c34b0bcb5391c0cb34ed8aa4a5b9cca4f682e6ff3" +
  "748f82ee78a5636f84c878148cc7020890befffaa4506cebbef9a3f7c67178f2";
const ROUNDS: readonly number[] = Array.from({ length: 64 }, (_, i) =>
  Number.parseInt(PRIMES.slice(8 * i, 8 * i + 8), 16),
);

/** Of the square roots of the first eight (section 5.3.3). */
const FIRST: readonly number[] = [
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

const rotated = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits));
/** The four functions of section 4.1.2, of which two end with a rotation and two with a shift. */
const mixed = (word: number, a: number, b: number, last: number): number => rotated(word, a) ^ rotated(word, b) ^ last;

/** SHA-256 as 64 hexadecimal digits, synchronously. */
export function sha256(message: Uint8Array): string {
  const { length } = message;
  // The message, a bit, zeros, and the length in bits as 64 bits.
  const padded = new Uint8Array(((length + 72) >> 6) << 6);
  padded.set(message);
  padded[length] = 0x80;
  const words = new DataView(padded.buffer);
  words.setUint32(padded.length - 8, Math.floor(length / 2 ** 29));
  words.setUint32(padded.length - 4, length * 8);

  const hash = Int32Array.from(FIRST);
  const schedule = new Int32Array(64);
  const at = (i: number): number => schedule[i] as number;
  for (let block = 0; block < padded.length; block += 64) {
    let [a, b, c, d, e, f, g, h] = hash as unknown as [number, number, number, number, number, number, number, number];
    for (let i = 0; i < 64; i++) {
      const word =
        i < 16
          ? words.getInt32(block + i * 4)
          : (at(i - 16) +
              mixed(at(i - 15), 7, 18, at(i - 15) >>> 3) +
              at(i - 7) +
              mixed(at(i - 2), 17, 19, at(i - 2) >>> 10)) |
            0;
      schedule[i] = word;
      const one = (h + mixed(e, 6, 11, rotated(e, 25)) + ((e & f) ^ (~e & g)) + (ROUNDS[i] as number) + word) | 0;
      const two = (mixed(a, 2, 13, rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      // Not by a pattern, which makes an array for each round.
      h = g;
      g = f;
      f = e;
      e = (d + one) | 0;
      d = c;
      c = b;
      b = a;
      a = (one + two) | 0;
    }
    for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) hash[i] = (hash[i] as number) + word;
  }
  return Array.from(hash, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}
