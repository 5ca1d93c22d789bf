// Invalid input in the current runtime: the same message as on every host, and no call of the store.
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

/** Whether this runtime lacks such a value: without BigInt there is no bigint to refuse. */
const isUnknown = (vector) => typeof BigInt === "undefined" && /"\$":"\d+n"/.test(JSON.stringify(vector));

/** The result of each vector, in the suite's format. */
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
