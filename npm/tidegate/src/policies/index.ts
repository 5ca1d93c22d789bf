/**
 * Limits from a JSON document of rules, which can be replaced at run time.
 *
 * @module
 */
export { checkPolicies, PolicyError } from "./check.ts";
export type {
  AlgorithmConfig,
  DescriptorText,
  PolicyDocument,
  PolicyProblem,
  PolicyRule,
  RuleCost,
  TierConfig,
} from "./document.ts";
export type { OnStoreError } from "../limit/config.ts";
export type { EscalatingBlock } from "../middleware/escalation.ts";
export { definePolicies, type Policies, type PoliciesOptions, type PolicyRequest } from "./policies.ts";
export { keysOfPolicies, type PolicyKeys } from "./key-text.ts";
export { type KeyValues, policyTarget, type PolicyTarget } from "./target.ts";
