/** Where a state is stored, and for how long: the protocol's rules for keys and times. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SLACK } from "../../../npm/tidegate/src/stores/steps.ts";
import { exptimeOf, keyOf } from "../../../npm/tidegate/src/stores/memcached/client.ts";

describe("a key", () => {
  test.each([
    ["login", "tidegate:login"],
    ["login/3:user@example.com", "tidegate:login/3:user@example.com"],
    ["login:a b", "tidegate:login:a%20b"],
    ["login:a%20b", "tidegate:login:a%2520b"],
    ["login:$&", "tidegate:login:%24%26"],
    ["login:é", "tidegate:login:%c3%a9"],
    ["login:\ud800", "tidegate:login:%ed%a0%80"],
    ["login:\u0001", "tidegate:login:%01"],
  ])("of %j is %j", (id, key) => expect(keyOf("tidegate", id)).toBe(key));

  test("is sent unchanged by every client, and no two identities have the same", () => {
    const unit = fc.oneof(
      fc.constantFrom("$", "%", " ", "\r\n", "\u00a0", "#", "\udc00"),
      fc.string({ unit: "binary" }),
    );
    const text = fc.array(unit, { maxLength: 120 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(text, text, (one, other) => {
        const [a, b] = [keyOf("p", `n:${one}`), keyOf("p", `n:${other}`)];
        expect(a).toMatch(/^p:[\w.:/@+=,~%#-]{1,198}$/);
        expect(a === b).toBe(one === other);
      }),
    );
  });
});

describe("the expiry of a state that is full", () => {
  const DAY = 86_400_000;
  const wall = Date.UTC(2026, 0, 1);
  const seconds = wall / 1000;
  test.each([
    ["full already", -5000, 60],
    ["full in a ms", 1, 61],
    ["the longest wait there is", 30 * DAY - 60_000, 2_592_000],
    ["a ms longer: a time", 30 * DAY - 59_999, seconds + 2_592_001 + 3600],
    ["40 days", 40 * DAY, seconds + 40 * 86_400 + 60 + 3600],
    ["in 2038: never", 20 * 365 * DAY, 0],
  ])("%s", (_, wait, exptime) => expect(exptimeOf(Math.max(wait, 0) + SLACK, wall)).toBe(exptime));
});
