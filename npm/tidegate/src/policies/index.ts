/**
 * Limits from data: a JSON document of rules, checked whole, changed while it runs.
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
export { policyKey } from "./key.ts";
export { definePolicies, Policies, type PoliciesOptions, type PolicyRequest } from "./policies.ts";
