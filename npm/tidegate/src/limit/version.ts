/** Refuses a store that another version of the package made. */
import { VERSION } from "../engine/generated/bounds.ts";
import { InputError } from "./errors.ts";

/** Throws where another version of the package made the store: the two would mistake each other's numbers. */
export function checkVersion(store: object): void {
  const { tidegate = VERSION } = store as { readonly tidegate?: string };
  if (tidegate === VERSION) return;
  const rule = `made by the tidegate that uses it, which is ${VERSION}: install one version`;
  throw new InputError("store", rule, store, `a store made by tidegate ${tidegate}`);
}
