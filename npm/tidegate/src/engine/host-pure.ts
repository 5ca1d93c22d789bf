// Hosts without WebAssembly (React Native's Hermes, Convex's runtime, pages whose policy forbids it): the small builds as
// plain JavaScript. They need neither `eval` nor BigInt.
export { instantiate as loadAlgebra } from "./generated/algebra-pure.js";
export { instantiate as load, instantiate as loadDistributed } from "./generated/small-pure.js";
