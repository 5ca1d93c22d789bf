// Bad input in whatever runtime this is: each time the sentence that every host says, and nothing is asked of a store.
import { defineLimits, evaluate, memory } from "tidegate";
import vectors from "./invalid-vectors.js";
import { revive } from "./revive.js";

const thrown = (body) => {
  try {
    body();
  } catch ({ code, message }) {
    return `${code} ${message}`;
  }
  return "nothing was thrown";
};

/** Whether this runtime has no such value: there is no bigint to refuse where there is no BigInt. */
const isUnknown = (vector) => typeof BigInt === "undefined" && /"\$":"\d+n"/.test(JSON.stringify(vector));

/** What came of each vector, as the suite tells it. */
export function invalid() {
  return vectors.flatMap((vector) => (isUnknown(vector) ? [] : [refused(vector)]));
}

function refused({ name, config, call = {}, error }) {
  const [bad, { now = 1000, ...options }] = [revive(config), revive(call)];
  const store = memory();
  const limits = defineLimits({ chat: { kind: "token bucket", rate: 1, period: 1000 } }, { store, now: () => now });
  const results = [
    thrown(() => limits.limit("chat", { ...options, config: bad })),
    thrown(() => evaluate(null, bad, { now, ...options })),
  ];
  const wrong = results.filter((one) => one !== `TIDEGATE_INPUT ${error}`);
  if (store.stats().keys > 0) wrong.push("something was written");
  return { name: `refused: ${name}`, ...(wrong.length === 0 ? {} : { error: `${wrong[0]}, not: ${error}` }) };
}
