import { expect, test, vi } from "vitest";
import { defineLimits, MINUTE } from "../../src/index.ts";
import { Gate } from "../../src/middleware/gate.ts";

const limits = defineLimits({ api: { kind: "token bucket", rate: 5, period: MINUTE } });

test("a key function that throws leaves no unhandled rejection of an earlier rule's", async () => {
  const rejects = () => Promise.reject(new Error("first"));
  const throws = (): string => {
    throw new Error("second");
  };
  const rules = [
    { name: "api", key: rejects },
    { name: "api", key: throws },
  ] as const;
  const unhandled = vi.fn();
  process.on("unhandledRejection", unhandled);
  expect(() => new Gate(limits, { limits: rules }).admit({}, {})).toThrow("second");
  await new Promise((done) => setImmediate(done));
  process.off("unhandledRejection", unhandled);
  expect(unhandled).not.toHaveBeenCalled();
});
