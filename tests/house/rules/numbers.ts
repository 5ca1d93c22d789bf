/** Arithmetic that is the same on every processor and in every engine. */
import { matching, type Rule, type Tree } from "../tree.ts";

/** IEEE 754 leaves the last bit of these open: Node.js 20 returns other bits for some of them on arm64 than on x64. */
const FUNCTIONS =
  "a?sinh?|a?cosh?|a?tanh?|atan2|exp2?|expm1|exp_m1|ln|ln_1p|log|log2|log10|log1p|pow[fi]?|cbrt|hypot|sin_cos";
/** `**` is `Math.pow`; of 2 its powers are exact. */
const JAVASCRIPT = new RegExp(`\\bMath\\s*\\.\\s*(${FUNCTIONS})\\b|(?<!(?<![\\w.])2) \\*\\* `);
const RUST = new RegExp(`\\.(${FUNCTIONS})\\(|\\bf64::(${FUNCTIONS})\\b`);
const PLACES = [
  [/^npm\/tidegate\/src\/(?!engine\/generated\/).*\.tsx?$/, JAVASCRIPT],
  [/^crates\/(core|table|file|policy|wasm|node)\/src\/.*\.rs$/, RUST],
] as const;

const inexact = (tree: Tree): string[] =>
  PLACES.flatMap(([files, pattern]) =>
    matching(tree, files).flatMap(([path, text]) => {
      const found = pattern.exec(text);
      return found === null ? [] : [`${path} uses ${found[0]}, whose last bit differs between processors`];
    }),
  );

export const numbers: readonly Rule[] = [
  {
    name: "a decision uses no function whose last bit differs between processors",
    check: inexact,
    broken: [
      { "npm/tidegate/src/limiter/spread.ts": "export const wait = (x: number): number => Math.exp(-x);\n" },
      { "npm/tidegate/src/client/retry.ts": "export const wait = (x: number): number => Math.pow(1.5, x);\n" },
      { "npm/tidegate/src/client/retry.ts": "export const wait = (x: number): number => 1.5 ** x;\n" },
      { "crates/core/src/take.rs": "fn weight(x: f64, n: i32) -> f64 { x.powi(n) }\n" },
      { "crates/core/src/take.rs": "fn weight(x: f64) -> f64 { x.powf(0.5) }\n" },
      { "crates/policy/src/number.rs": "fn weight(x: f64) -> f64 { f64::ln(x) }\n" },
    ],
  },
];
