/** What a Mach-O library of macOS says of itself: https://github.com/apple-oss-distributions/xnu (EXTERNAL_HEADERS/mach-o/loader.h). */
import { createHash } from "node:crypto";

export interface MachO {
  readonly arch: "x64" | "arm64";
  /** The oldest macOS that loads it, as "11.0". */
  readonly minimum: string;
  /** Its own name. */
  readonly id: string;
  /** The libraries that it needs. */
  readonly libraries: readonly string[];
  /** The functions that other code can call. */
  readonly exports: readonly string[];
  /** Whether it is signed: each page has the hash that its signature lists. Arm64 loads nothing else. */
  readonly signed: boolean;
}

const MAGIC = 0xfeed_facf;
const CPUS: Readonly<Record<number, MachO["arch"]>> = { 16777223: "x64", 16777228: "arm64" };
const [SYMTAB, LOAD_DYLIB, ID_DYLIB, SIGNATURE, BUILD_VERSION] = [0x2, 0xc, 0xd, 0x1d, 0x32];
/** Bits of a symbol's type: it is for debuggers; it is defined; others see it. */
const [STAB, DEFINED, EXTERNAL] = [0xe0, 0x0e, 0x01];

const textAt = (bytes: Buffer, at: number): string => bytes.toString("latin1", at, bytes.indexOf(0, at));

export function readMachO(bytes: Buffer): MachO {
  const arch = CPUS[bytes.readUInt32LE(4)];
  if (bytes.readUInt32LE(0) !== MAGIC || arch === undefined) throw new Error("not a Mach-O file of x64 or arm64");
  const found = { minimum: "", id: "", libraries: [] as string[], exports: [] as string[], signed: false };
  let at = 32;
  for (let left = bytes.readUInt32LE(16); left > 0; left--) {
    const word = (offset: number) => bytes.readUInt32LE(at + offset);
    const command = word(0);
    if (command === BUILD_VERSION) found.minimum = `${word(12) >>> 16}.${(word(12) >>> 8) & 0xff}`;
    if (command === ID_DYLIB) found.id = textAt(bytes, at + word(8));
    if (command === LOAD_DYLIB) found.libraries.push(textAt(bytes, at + word(8)));
    if (command === SIGNATURE) found.signed = isSigned(bytes, word(8));
    if (command === SYMTAB) found.exports.push(...exported(bytes, word(8), word(12), word(16)));
    at += word(4);
  }
  return { arch, ...found };
}

function exported(bytes: Buffer, symbols: number, count: number, names: number): string[] {
  const entries = Array.from({ length: count }, (_, i) => symbols + 16 * i);
  const isExported = (type: number) => (type & STAB) === 0 && (type & DEFINED) !== 0 && (type & EXTERNAL) !== 0;
  return entries
    .filter((entry) => isExported(bytes[entry + 4] as number))
    .map((entry) => textAt(bytes, names + bytes.readUInt32LE(entry)));
}

/** Compares each page with its hash. Numbers of a signature are big-endian. */
function isSigned(bytes: Buffer, signature: number): boolean {
  const DIRECTORY = 0xfade_0c02;
  const SHA256 = 2;
  for (let left = bytes.readUInt32BE(signature + 8), i = 0; left > 0; left--, i++) {
    const at = signature + bytes.readUInt32BE(signature + 12 + 8 * i + 4);
    if (bytes.readUInt32BE(at) !== DIRECTORY || bytes[at + 37] !== SHA256) continue;
    const [hashes, pages, end] = [16, 28, 32].map((offset) => bytes.readUInt32BE(at + offset)) as [
      number,
      number,
      number,
    ];
    const page = 2 ** (bytes[at + 39] as number);
    if (pages !== Math.ceil(end / page)) return false;
    return Array.from({ length: pages }, (_, n) => n).every((n) => {
      const hash = createHash("sha256").update(bytes.subarray(n * page, Math.min((n + 1) * page, end)));
      return hash.digest().equals(bytes.subarray(at + hashes + 32 * n, at + hashes + 32 * (n + 1)));
    });
  }
  return false;
}
