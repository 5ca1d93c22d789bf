/**
 * The contract of a store, for authors of one.
 *
 * @module
 */
export type { OnStoreError } from "../limit/config.ts";
export { decode, decodeText, encode, encodeText } from "../limit/codec.ts";
export type { AllDecision, Decision, State } from "../limit/decision.ts";
export { StoreError } from "../limit/errors.ts";
export type { Evaluation } from "../limit/evaluator.ts";
export { Limit } from "../limit/limit.ts";
export { pool } from "../limit/shards.ts";
export { layers } from "../limiter/layers.ts";
export type { LeaseOptions } from "../limiter/lease/options.ts";
export type { AsyncStore, Call, Deadline, Op, Store, SyncStore } from "./contract.ts";
export type { Transaction } from "./steps.ts";
export { type TransactionalOptions, transactional } from "./transactional.ts";
