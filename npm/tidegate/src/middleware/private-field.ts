/** A value of each object: a private field, or a `WeakMap`. */
export interface PerObject<T> {
  get(object: object): T | undefined;
  set(object: object, value: T): void;
}

/** The object that a constructor returns gets the private fields of the class that extends it. */
class ReturnsObject {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: the purpose of this class
    return object;
  }
}

/**
 * A field of objects that each exist for one request, which no other code sees and no copy has. An entry of a `WeakMap` costs
 * the garbage collector more than all else that middleware does with a request; except in Express, which replaces the
 * prototype of requests: a further field of such an object costs more than the entry.
 */
export function privateField<T>(): PerObject<T> {
  class Holder extends ReturnsObject {
    #value: T;
    constructor(object: object, value: T) {
      super(object);
      this.#value = value;
    }
    static get = (object: object): T | undefined => (#value in object ? object.#value : undefined);
    static set = (object: object, value: T): void => {
      if (#value in object) object.#value = value;
      else new Holder(object, value);
    };
  }
  return Holder;
}
