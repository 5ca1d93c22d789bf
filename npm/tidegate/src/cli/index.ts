/**
 * What the command lines of Tidegate's packages share: a store by its URL, and errors. For `tidegate-serve`; apps make their
 * stores.
 *
 * @module
 */
export { LONGEST_TIMER } from "../limit/duration.ts";
export { messagesOf, printable, reportUnwritable } from "./output.ts";
export {
  type Clients,
  type Connection,
  openStore,
  type OpenStore,
  storeKind,
  type StoreKind,
  type StoreSettings,
} from "./store.ts";
export { argumentError, durationOf, UsageError } from "./usage.ts";
