/** How a count is divided over shards that hold different amounts. */

/** A part of a count: of which shard, and how many tokens. */
export type Part = readonly [shard: number, tokens: number];

/**
 * What each shard gives so that together they give `count`: the fullest first, down to one level. None is left below
 * `floor`. The parts add up to the count but for rounding.
 */
export function drain(values: readonly number[], count: number, floor: number): Part[] {
  const order = values.map((value, shard) => ({ value, shard })).sort((a, b) => b.value - a.value);
  let level = 0;
  let sum = 0;
  for (const [i, { value }] of order.entries()) {
    sum += value;
    level = (sum - count) / (i + 1);
    if (level >= (order[i + 1]?.value ?? Number.NEGATIVE_INFINITY)) break;
  }
  const parts: Part[] = [];
  for (const { value, shard } of order) {
    let tokens = value - level;
    // Rounding must not take slightly more from a shard than it has.
    while (tokens > 0 && value - tokens < floor) tokens = Math.min(tokens, value - floor) * (1 - Number.EPSILON);
    if (tokens > 0) parts.push([shard, tokens]);
  }
  return parts;
}

/** What each shard gets so that together they get `count`: the emptiest first, up to one level, none above `capacity`. */
export function fill(values: readonly number[], count: number, capacity: number): Part[] {
  const lacks = values.map((value) => capacity - value);
  const missing = lacks.reduce((sum, lack) => sum + Math.max(lack, 0), 0);
  return drain(lacks, Math.min(count, missing), 0);
}
