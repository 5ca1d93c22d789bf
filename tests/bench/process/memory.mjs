// Memory per key, and the longest call, while many new keys arrive.
import { load } from "./contenders.mjs";
import { short } from "./keys.mjs";
import { PERIOD_MS } from "./speed.mjs";

/** Called with each new key's index; the strings are made here, so their garbage is the same for every contender. */
async function fill(limiter, from, to) {
  const pauses = { longestMs: 0 };
  let before = performance.now();
  for (let i = from; i < to; i++) {
    const answer = limiter.decide(short(i));
    if (limiter.promised) await answer;
    const after = performance.now();
    if (after - before > pauses.longestMs) pauses.longestMs = after - before;
    before = after;
  }
  return pauses;
}

function fullCollection() {
  const before = performance.now();
  globalThis.gc();
  return performance.now() - before;
}

/**
 * Before the measurement, on a limiter that is then dropped: compiles everything, and makes as much garbage as the measurement
 * will. V8's young generation has then grown, by up to 30 MB, which would count as memory of the keys otherwise.
 */
async function warm(contender, options, keys) {
  const few = 20_000;
  const limiter = await load(contender, { ...options, maxKeys: few });
  for (let made = 0; made < keys; made += few) await fill(limiter, 0, few);
  globalThis.gc();
  globalThis.gc();
}

/** `keys` new keys: bytes per key, JS heap of it, the longest call, and the duration of the next full collection. */
export async function memory({ contender, keys }) {
  const options = { capacity: 10, periodMs: PERIOD_MS, maxKeys: keys };
  await warm(contender, options, keys);
  const limiter = await load(contender, options);
  const before = process.memoryUsage();
  const { longestMs } = await fill(limiter, 0, keys);
  const collectionMs = fullCollection();
  globalThis.gc();
  const after = process.memoryUsage();
  const again = await limiter.decide(short(keys - 1)); // keeps the limiter and its keys alive
  if (limiter.decides !== false && again.remaining !== 8) throw new Error(`forgot a key: ${JSON.stringify(again)}`);
  return {
    bytesPerKey: (after.rss - before.rss) / keys,
    heapPerKey: (after.heapUsed - before.heapUsed) / keys,
    longestMs,
    collectionMs,
  };
}

/**
 * Bytes per key at sixteen sizes up to `keys`, as the table grows: right after growing, and full. Then
 * `keys` others are added once all of the first are full again, so that they may be evicted.
 */
export async function ages({ contender, keys }) {
  const periodMs = 1000;
  const options = { capacity: 1000, periodMs: PERIOD_MS, maxKeys: keys };
  await warm(contender, options, keys);
  const sizes = [];
  {
    const limiter = await load(contender, options);
    const before = process.memoryUsage().rss;
    for (let step = 1; step <= 16; step++) {
      const known = Math.round((keys * step) / 16);
      await fill(limiter, Math.round((keys * (step - 1)) / 16), known);
      globalThis.gc();
      sizes.push((process.memoryUsage().rss - before) / known);
    }
    await limiter.decide(short(0));
  }
  globalThis.gc();
  const churned = await load(contender, { capacity: 1000, periodMs, maxKeys: keys });
  const first = await fill(churned, 0, keys);
  await new Promise((resolve) => setTimeout(resolve, 20)); // one token per ms refills: all are full
  const rss = process.memoryUsage().rss;
  const second = await fill(churned, keys, 2 * keys);
  globalThis.gc();
  return {
    sizes,
    growthPerNewKey: (process.memoryUsage().rss - rss) / keys,
    longestFillMs: first.longestMs,
    longestChurnMs: second.longestMs,
  };
}
