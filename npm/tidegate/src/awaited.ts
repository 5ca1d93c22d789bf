/** What says so when a decision's fields are read from the promise of one. */
import { InputError } from "./errors.ts";

/**
 * Those that a caller decides by. Not `value`: others keep their own there, such as React's `use`.
 */
const FIELDS = ["ok", "remaining", "retryAt", "retryAfter", "decisions"];

// Not `Promise.prototype`: what async functions return is the host's own, also where `Promise` was put in its place.
const hosts: object = /* @__PURE__ */ Object.getPrototypeOf(/* @__PURE__ */ (async () => {})());

const property = (field: string): [string, PropertyDescriptor] => [
  field,
  {
    configurable: true,
    get(this: unknown): never {
      throw new InputError(field, "read after `await`: this limiter's store answers with promises", this, "a promise");
    },
  },
];

// Between a promise and what all promises have: `constructor` is still theirs, so `await` and `instanceof` see no other.
const between: object = /* @__PURE__ */ Object.create(
  hosts,
  /* @__PURE__ */ Object.fromEntries(/* @__PURE__ */ FIELDS.map(property)),
);

/**
 * Without `await`, `ok` of a promise reads as `undefined`, which denies everybody and says nothing: from now on reading
 * it throws. Anything but a promise of the host's own stays as it is.
 */
export function unawaited(answer: unknown): void {
  if (answer instanceof Promise && Object.getPrototypeOf(answer) === hosts) Object.setPrototypeOf(answer, between);
}
