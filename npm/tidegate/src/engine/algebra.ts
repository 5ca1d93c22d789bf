/** The module with the algebra alone, and the choice of the one engine that all copies of the package share. */
import { loadAlgebra } from "#engine-host";
import type { Numbers } from "./answer.ts";
import type { AlgebraExports, Memory } from "./exports.ts";
import { VERSION } from "./generated/bounds.ts";
import { NUMBERS } from "./generated/wire.ts";

/** Instantiates a module. `grown` is called after its memory has grown, if that does not detach the old views. */
export type Load<E> = (grown: () => void) => E;

/** A WebAssembly module with the algebra, and the view of the numbers of a call in its memory. */
export class Algebra<E extends Memory = AlgebraExports> {
  readonly wasm: E;
  readonly #numbersAt: number;
  #numbers: Numbers;

  constructor(load: Load<E>) {
    this.wasm = load(() => {
      this.#numbers = this.#view();
    });
    this.#numbersAt = this.wasm.numbers_at();
    this.#numbers = this.#view();
  }

  /** The view of the memory as it is now. The memory may grow during a call, so nothing is called here. */
  #view(): Numbers {
    return new Float64Array(this.wasm.memory.buffer, this.#numbersAt, NUMBERS) as Numbers;
  }

  /**
   * The eight numbers: a policy is written here before a call, which leaves its decision here. A call may grow the memory,
   * which detaches views. A detached view is empty.
   */
  get numbers(): Numbers {
    if (this.#numbers.length === 0) this.#numbers = this.#view();
    return this.#numbers;
  }
}

/** A view of `count` doubles at an address of the memory, which is valid until the next call. */
export const doublesAt = ({ memory }: Memory, at: number, count: number): Float64Array =>
  new Float64Array(memory.buffer, at >>> 0, count);

/** Copies of one version have one engine in a thread, so each copy's stores and limits work with the others'. */
const key = (what: string): symbol => Symbol.for(`tidegate ${what} ${VERSION}`);

/** The value that all copies of this version have in this thread, made by the first caller. */
export function oncePerThread<T>(what: string, make: () => T): T {
  const realm: Record<symbol, T | undefined> = globalThis;
  realm[key(what)] ??= make();
  return realm[key(what)] as T;
}

/** What {@link oncePerThread} has already, or this copy's own, which is not kept: a host that cannot load leaves the choice open. */
export const chosen = <T>(what: string, own: T): T => (globalThis as Record<symbol, T | undefined>)[key(what)] ?? own;

let loaded: Algebra | undefined;

/** The algebra of this thread, loaded by the first call. */
export function algebra(): Algebra {
  loaded ??= oncePerThread(
    "algebra",
    chosen("algebra by", () => new Algebra(loadAlgebra)),
  );
  return loaded;
}
