// SHA-256 (FIPS 180-4), at once: the platform's own answers with a promise, and a key is needed now.

/** The first 32 bits of the fraction of each prime's root: square roots of the first 8, cube roots of the first 64. */
function fractions(root: (prime: number) => number, count: number): Uint32Array {
  const words = new Uint32Array(count);
  for (let candidate = 2, found = 0; found < count; candidate++) {
    let prime = true;
    for (let d = 2; d * d <= candidate; d++) if (candidate % d === 0) prime = false;
    if (prime) words[found++] = Math.floor((root(candidate) % 1) * 2 ** 32);
  }
  return words;
}

const INITIAL = fractions(Math.sqrt, 8);
const ROUNDS = fractions(Math.cbrt, 64);
const turn = (word: number, by: number): number => (word >>> by) | (word << (32 - by));

/** The message, a bit, zeros, and its length in bits as 64: whole blocks of 64 bytes. */
function padded(message: Uint8Array): DataView {
  const bytes = new Uint8Array(Math.ceil((message.length + 9) / 64) * 64);
  bytes.set(message);
  bytes[message.length] = 0x80;
  const view = new DataView(bytes.buffer);
  view.setUint32(bytes.length - 8, Math.floor(message.length / 2 ** 29));
  view.setUint32(bytes.length - 4, message.length << 3);
  return view;
}

/** The hash in 64 hexadecimal digits. */
export function sha256(message: Uint8Array): string {
  const view = padded(message);
  const hash = INITIAL.slice();
  const w = new Uint32Array(64);
  for (let block = 0; block < view.byteLength; block += 64) {
    for (let i = 0; i < 64; i++) {
      if (i < 16) {
        w[i] = view.getUint32(block + i * 4);
        continue;
      }
      const a = w[i - 15] as number;
      const b = w[i - 2] as number;
      const s0 = turn(a, 7) ^ turn(a, 18) ^ (a >>> 3);
      const s1 = turn(b, 17) ^ turn(b, 19) ^ (b >>> 10);
      w[i] = (w[i - 16] as number) + s0 + (w[i - 7] as number) + s1;
    }
    let [a, b, c, d, e, f, g, h] = hash as unknown as [number, number, number, number, number, number, number, number];
    for (let i = 0; i < 64; i++) {
      const s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (ROUNDS[i] as number) + (w[i] as number)) | 0;
      const s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
    }
    for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) hash[i] = (hash[i] as number) + word;
  }
  return Array.from(hash, (word) => word.toString(16).padStart(8, "0")).join("");
}
