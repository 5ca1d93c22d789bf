/**
 * Limits from data: a JSON document of rules, checked whole, changed while it runs.
 *
 * @module
 */
export { checkPolicies, PolicyError } from "./policies/check.ts";
export type {
  AlgorithmConfig,
  DescriptorText,
  PolicyDocument,
  PolicyProblem,
  PolicyRule,
  RuleCost,
  TierConfig,
} from "./policies/document.ts";
export { policyKey } from "./policies/key.ts";
export { definePolicies, Policies, type PoliciesOptions, type PolicyRequest } from "./policies/policies.ts";
