/** Objects that were marked: once each. */
export interface Marks {
  has(object: object): boolean;
  /** Throws a `TypeError` where the object already has the mark. */
  add(object: object): void;
}

/** The object that a constructor returns gets the private fields of the class that extends it. */
class Given {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: the purpose of this class
    return object;
  }
}

/**
 * Marks for objects that each exist for one request: private fields of theirs, which no other code sees and no copy has. A `WeakSet`
 * would do the same, but its entries cost the garbage collector more than all else that middleware does with a request.
 */
export function marks(): Marks {
  class Mark extends Given {
    readonly #marked = true;
    static has = (object: object): boolean => #marked in object;
  }
  return { has: Mark.has, add: (object) => void new Mark(object) };
}
