/**
 * Throws on a big-endian processor. The engine's memory is little-endian, and views of it have the processor's order: numbers
 * and keys would be others. Not called for pages, which no such processor shows.
 */
export function checkByteOrder(): void {
  if (new Uint8Array(new Uint16Array([1]).buffer)[0] === 1) return;
  throw new Error("Tidegate needs a little-endian processor, such as x64 or arm64; this one is big-endian");
}
