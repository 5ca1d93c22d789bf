// The keys of requests.

/** Keys in a shuffled order, the same for every contender. */
function shuffled(count) {
  const order = new Uint32Array(count);
  for (let i = 0; i < count; i++) order[i] = i;
  let seed = 0x9e3779b9;
  for (let i = count - 1; i > 0; i--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const j = Math.floor((seed / 0x1_0000_0000) * (i + 1));
    const swapped = order[i];
    order[i] = order[j];
    order[j] = swapped;
  }
  return order;
}

/** 12 characters, made at each call by a template literal. */
export const short = (i) => `user:${1_000_000 + i}`;

/** A header whose last 40 characters are the key. */
const header = (i) =>
  `Bearer ${Buffer.from(`key${1_000_000 + i}-${(i * 7919) % 99_991}`.padEnd(30, "tide"))
    .toString("base64")
    .slice(0, 40)}`;

const SHAPES = {
  /** The same string objects each time: the engine has cached their hash. */
  prepared: (count, first) => {
    const strings = Array.from({ length: count }, (_, i) => [...short(first + i)].join(""));
    return (i) => strings[i];
  },
  short: () => short,
  /** 40 characters, cut from a header at each call. */
  long: (count) => {
    const headers = Array.from({ length: count }, (_, i) => header(i));
    return (i) => headers[i].slice(7);
  },
};

/**
 * Returns the key of the next request: first each of `count` keys once, from `first` on, in a shuffled order; then
 * random ones of them, as in traffic. (Repeating the first order would let a `Map` read its memory
 * sequentially, which traffic does not.)
 */
export function requests(shape, count, first = 0) {
  if (count === 1) {
    const only = SHAPES[shape](1, first)(0);
    return () => only;
  }
  const key = SHAPES[shape](count, first);
  const order = shuffled(count);
  let at = 0;
  let seed = 0x2545f491;
  return () => {
    if (at < count) return key(order[at++]);
    seed ^= seed << 13;
    seed ^= seed >>> 17;
    seed ^= seed << 5;
    return key((seed >>> 0) % count);
  };
}
