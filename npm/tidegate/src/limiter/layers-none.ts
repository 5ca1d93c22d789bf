/** Replaces layers.ts in bundles for pages: no layers. */
import { InputError } from "../limit/errors.ts";
import type { Store } from "../stores/contract.ts";

/** Browsers and React Native: a store that can fail brings its layers, so that a page in memory does not download them. */
export function layers(store: Store): never {
  throw new InputError("store", "memory(), or in this bundle a store with the `layers` of tidegate/store", store);
}
