/** Levels of urgency: 0 to 9, the highest first. */
export const LEVELS = 10;
/** How many later calls may go first for each level that they are above. */
export const PLACES_A_LEVEL = 100;

/** A call that waits. */
export interface Ticket {
  /** Tokens that it takes. */
  readonly count: number;
  readonly priority: number;
  /** Where it stands, the lowest first; -1 while it does not. */
  rank: number;
  previous: Ticket | undefined;
  next: Ticket | undefined;
}

interface Level {
  first: Ticket | undefined;
  last: Ticket | undefined;
}

/**
 * Calls in the order in which they are to run. Each level is first in, first out; between levels a call goes before those
 * that came at most {@link PLACES_A_LEVEL} places earlier for each level that it is above them. So nobody waits for ever:
 * from so many calls on, even the most urgent stand behind. Every step takes the same time, however long the line is.
 */
export class Line<T extends Ticket> {
  readonly #levels: Level[] = Array.from({ length: LEVELS }, () => ({ first: undefined, last: undefined }));
  #arrived = 0;
  #length = 0;
  /** A bit for each level that has a call. */
  #used = 0;

  get length(): number {
    return this.#length;
  }

  push(ticket: T): void {
    const level = this.#levels[ticket.priority] as Level;
    ticket.rank = this.#arrived++ + (LEVELS - 1 - ticket.priority) * PLACES_A_LEVEL;
    ticket.previous = level.last;
    ticket.next = undefined;
    if (level.last === undefined) level.first = ticket;
    else level.last.next = ticket;
    level.last = ticket;
    this.#used |= 1 << ticket.priority;
    this.#length++;
  }

  /** Who is next. */
  first(): T | undefined {
    let found: Ticket | undefined;
    for (let used = this.#used; used !== 0; ) {
      const priority = 31 - Math.clz32(used);
      const { first } = this.#levels[priority] as Level;
      if (found === undefined || (first as Ticket).rank < found.rank) found = first;
      used &= ~(1 << priority);
    }
    return found as T | undefined;
  }

  /** Whoever came last of all. */
  newest(): T | undefined {
    const lasts = this.#levels.flatMap(({ last }) => (last === undefined ? [] : [last]));
    const arrived = ({ rank, priority }: Ticket): number => rank - (LEVELS - 1 - priority) * PLACES_A_LEVEL;
    return lasts.reduce<Ticket | undefined>(
      (newest, last) => (newest === undefined || arrived(last) > arrived(newest) ? last : newest),
      undefined,
    ) as T | undefined;
  }

  /** Everybody, in the order in which they are to run. Whoever is told leaves before the next is. */
  *[Symbol.iterator](): Generator<T> {
    for (let first = this.first(); first !== undefined; first = this.first()) yield first;
  }

  has(ticket: T): boolean {
    return ticket.rank !== -1;
  }

  remove(ticket: T): void {
    if (ticket.rank === -1) return;
    const level = this.#levels[ticket.priority] as Level;
    if (ticket.previous === undefined) level.first = ticket.next;
    else ticket.previous.next = ticket.next;
    if (ticket.next === undefined) level.last = ticket.previous;
    else ticket.next.previous = ticket.previous;
    ticket.previous = undefined;
    ticket.next = undefined;
    ticket.rank = -1;
    if (level.first === undefined) this.#used &= ~(1 << ticket.priority);
    this.#length--;
  }
}
