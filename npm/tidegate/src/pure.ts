/**
 * `tidegate` for hosts without WebAssembly: the same core as plain JavaScript, with the same answers to the bit. It is
 * slower and larger than the wasm. Import it before anything else of the package that decides, and once: what the other
 * entries decide is then decided by it too. It is one file without wasm; a page that also imports other entries downloads
 * theirs. React Native and Convex get it from `tidegate` itself, by their conditions; a bundler that is given the condition
 * `react-native` leaves the wasm out for any other host, too.
 *
 * ```ts
 * import { defineLimits, MINUTE } from "tidegate/pure";
 *
 * const limits = defineLimits({ send: { kind: "token bucket", rate: 10, period: MINUTE } });
 * ```
 *
 * @module
 */
import { checkByteOrder } from "./engine/byte-order.ts";
import { loadBy } from "./engine/engine.ts";
import { load } from "./engine/host-pure.ts";

checkByteOrder();
loadBy(load);

export * from "./index.ts";
