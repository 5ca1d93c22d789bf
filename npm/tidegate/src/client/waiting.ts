/** The order in which queued calls run. */

/** Levels of priority: 0 to 9, the highest first. */
export const LEVELS = 10;
/** How many later calls may precede an earlier one, for each level above it. */
const PLACES_PER_LEVEL = 100;

/** A call as {@link WaitingCalls} links it. */
export interface Waiting {
  readonly priority: number;
  readonly count: number;
  /** For a retry, the number of its call: retries are in the order of these. */
  readonly retryOf?: number | undefined;
  /** Its place in the order, the lowest first; -1 once it is removed. */
  rank: number;
  previous: Waiting | undefined;
  next: Waiting | undefined;
}

interface Level {
  first: Waiting | undefined;
  last: Waiting | undefined;
}

const arrival = ({ rank, priority }: Waiting): number => rank - (LEVELS - 1 - priority) * PLACES_PER_LEVEL;

/**
 * Queued calls in the order in which they run. Each level is first in, first out; between levels a call precedes those
 * that arrived at most {@link PLACES_PER_LEVEL} calls earlier for each level below it, so no call starves. A retry precedes those
 * of later calls. Every other step takes constant time, which is why the levels are linked lists and not arrays.
 */
export class WaitingCalls<T extends Waiting> {
  readonly #levels: Level[] = Array.from({ length: LEVELS }, () => ({ first: undefined, last: undefined }));
  #arrived = 0;
  length = 0;

  push(call: T): void {
    const level = this.#levels[call.priority] as Level;
    call.rank = this.#arrived++ + (LEVELS - 1 - call.priority) * PLACES_PER_LEVEL;
    let before = level.last;
    let after: Waiting | undefined;
    // What is not a retry has no number, and is neither before nor after one.
    for (; (before?.retryOf as number) > (call.retryOf as number); before = before?.previous) after = before;
    if (after !== undefined) call.rank = after.rank;
    call.previous = before;
    call.next = after;
    if (before === undefined) level.first = call;
    else before.next = call;
    if (after === undefined) level.last = call;
    else after.previous = call;
    this.length++;
  }

  /** The call that runs next. */
  first(): T | undefined {
    let found: Waiting | undefined;
    for (const { first } of this.#levels) {
      if (first !== undefined && (found === undefined || first.rank < found.rank)) found = first;
    }
    return found as T | undefined;
  }

  /** The newest call that needs tokens. */
  newest(): T | undefined {
    let found: Waiting | undefined;
    for (const { last } of this.#levels) {
      let newest = last;
      while (newest?.count === 0) newest = newest.previous;
      if (newest !== undefined && (found === undefined || arrival(newest) > arrival(found))) found = newest;
    }
    return found as T | undefined;
  }

  /** All calls in order, if each is removed before the next is requested. */
  *[Symbol.iterator](): Generator<T> {
    for (let first = this.first(); first !== undefined; first = this.first()) yield first;
  }

  /** Tokens of the calls that it precedes. */
  tokensBehind({ rank }: T): number {
    let sum = 0;
    for (const { last } of this.#levels) {
      for (let later = last; later !== undefined && later.rank > rank; later = later.previous) sum += later.count;
    }
    return sum;
  }

  has(call: T): boolean {
    return call.rank !== -1;
  }

  remove(call: T): void {
    const level = this.#levels[call.priority] as Level;
    if (call.previous === undefined) level.first = call.next;
    else call.previous.next = call.next;
    if (call.next === undefined) level.last = call.previous;
    else call.next.previous = call.previous;
    call.previous = undefined;
    call.next = undefined;
    call.rank = -1;
    this.length--;
  }
}
