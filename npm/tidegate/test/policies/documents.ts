import { readFileSync } from "node:fs";
import type { PolicyDocument } from "../../src/policies/index.ts";

interface Case {
  readonly about: string;
  readonly document: unknown;
}

/** A valid document, and the names of its limits in order. */
interface Valid extends Case {
  readonly limits: readonly string[];
}

/** A document, or its text, and the messages of its mistakes; `structural`: a schema detects them. */
interface Invalid extends Case {
  readonly text?: string;
  readonly structural: boolean;
  readonly sentences: readonly string[];
}

const folder = new URL("../../../../tests/policies/", import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, folder), "utf8");

/** The documents that the Rust tests read too. */
export const VALID = JSON.parse(read("valid.json")) as readonly Valid[];
export const INVALID = JSON.parse(read("invalid.json")) as readonly Invalid[];

/** Typical documents: plans by a claim, one bucket per API key, and a cost from a header. */
export const PLANS: PolicyDocument = {
  rules: [
    {
      name: "enterprise",
      limit_keys: ["header:x-api-key"],
      algorithm: "token_bucket",
      algorithm_config: { rps: 1000, burst: 2000 },
      match: { "jwt:plan": "enterprise" },
    },
    {
      name: "pro",
      limit_keys: ["header:x-api-key"],
      algorithm: "token_bucket",
      algorithm_config: { rps: 100, burst: 200 },
      match: { "jwt:plan": "pro" },
    },
    {
      name: "free",
      limit_keys: ["header:x-api-key"],
      algorithm: "token_bucket",
      algorithm_config: { rps: 10, burst: 20, cost_source: "header:x-request-cost", default_cost: 1 },
      match: { "jwt:plan": "free" },
    },
  ],
};
