/** Events in the order of their times; those of one time in the order in which they were added. */

export interface Event {
  /** Virtual µs. */
  readonly at: number;
  readonly order: number;
  /** The process that it happens in; `undefined` is outside of all of them. */
  readonly process: Process | undefined;
  /** `undefined`: cancelled. */
  run: (() => void | Promise<void>) | undefined;
}

/** A process of the simulated fleet, from its start to its end. When it dies its events are dropped. */
export interface Process {
  alive: boolean;
  /** What `Date.now()` shows at this virtual time, integer ms. */
  wall(us: number): number;
  /** What `performance.now()` shows at this virtual time, ms. */
  steady(us: number): number;
}

const before = (a: Event, b: Event): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);

/** A binary heap. */
export class Events {
  readonly #heap: Event[] = [];
  #added = 0;

  add(at: number, process: Process | undefined, run: () => void | Promise<void>): Event {
    const event: Event = { at, order: this.#added++, process, run };
    const heap = this.#heap;
    let place = heap.length;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!before(event, heap[parent] as Event)) break;
      heap[place] = heap[parent] as Event;
      place = parent;
    }
    heap[place] = event;
    return event;
  }

  /** The next event that is neither cancelled nor of a dead process. */
  next(): Event | undefined {
    for (;;) {
      const event = this.#pop();
      if (event === undefined || (event.run !== undefined && event.process?.alive !== false)) return event;
    }
  }

  #pop(): Event | undefined {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1] as Event, heap[child] as Event)) child++;
      if (!before(heap[child] as Event, last)) break;
      heap[place] = heap[child] as Event;
      place = child;
    }
    heap[place] = last;
    return first;
  }
}
