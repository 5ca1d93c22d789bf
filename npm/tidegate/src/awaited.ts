/** What says so when a decision's fields are read from the promise of one. */
import { InputError } from "./errors.ts";

/**
 * Those that a caller decides by. Not `value`: others keep their own there, such as React's `use`.
 */
const FIELDS = ["ok", "remaining", "retryAt", "retryAfter", "decisions"];

// Not `Promise.prototype`: what async functions return is the host's own, also where `Promise` was put in its place.
const hosts: object = /* @__PURE__ */ Object.getPrototypeOf(/* @__PURE__ */ (async () => {})());

// Between a promise and what all promises have: `constructor` is still theirs, so `await` and `instanceof` see no other.
const between: object = /* @__PURE__ */ FIELDS.reduce(
  (object, field) =>
    Object.defineProperty(object, field, {
      get(): never {
        const rule = "read after `await`: this limiter's store answers with promises";
        throw new InputError(field, rule, this, "a promise");
      },
    }),
  Object.create(hosts) as object,
);

/**
 * Without `await`, `ok` of a promise reads as `undefined`, which denies everybody and says nothing: from now on reading
 * it throws. Anything but a promise of the host's own stays as it is.
 */
export function unawaited(answer: unknown): void {
  if (answer instanceof Promise && Object.getPrototypeOf(answer) === hosts) Object.setPrototypeOf(answer, between);
}
