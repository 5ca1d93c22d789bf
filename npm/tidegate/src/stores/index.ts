/**
 * What a store is, for people who write one.
 *
 * @module
 */
export { decode, decodeText, encode, encodeText } from "../limit/codec.ts";
export type { AllDecision, Decision, State } from "../limit/decision.ts";
export { StoreError } from "../limit/errors.ts";
export type { Evaluation } from "../limit/limit.ts";
export { Limit } from "../limit/limit.ts";
export type { LeaseOptions } from "../limiter/lease/options.ts";
export type { AsyncStore, Call, Deadline, OnStoreError, Op, Store, SyncStore } from "./contract.ts";
export { type Transaction, transactional } from "./transactional.ts";
