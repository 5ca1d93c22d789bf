/** Stores that are wrong in one detail, as authors write them: the suite of `tidegate/testing` reports each. */
import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { combined } from "../src/limit/combined.ts";
import type { AsyncStore, Call, Decision, Limit, State } from "../src/stores/index.ts";
import { storeSuite } from "../src/testing/index.ts";

/** What an author may get wrong. */
interface Parts {
  identity: (limit: Limit, key: string | undefined) => string;
  /** What is stored of a state, if anything. */
  stored: (state: State, call: Call, before: State | null) => State | null;
  limit: (limit: Limit) => Limit;
  start: (limit: Limit, key: string | undefined) => number;
  now: (now: number) => number;
  /** Waits between the read and the write. */
  gap: () => Promise<void>;
}

/** A store on a Map, right but for these parts. */
function own(parts: Partial<Parts> = {}): AsyncStore {
  const states = new Map<string, State>();
  const {
    identity = (limit, key) => limit.identity(key),
    stored = (state) => state,
    limit: used = (limit) => limit,
  } = parts;
  const { start = (limit, key) => limit.start(key), now: clock = (now) => now, gap } = parts;
  const plan = (call: Call, now: number) => {
    const before = states.get(identity(call.limit, call.key)) ?? null;
    const at = { start: start(call.limit, call.key) };
    return { call, before, ...used(call.limit).evaluate(before, call, clock(now), at) };
  };
  const write = ({ call, before, state }: ReturnType<typeof plan>): void => {
    const kept = state === null || state === before ? null : stored(state, call, before);
    if (kept !== null) states.set(identity(call.limit, call.key), kept);
  };
  return {
    name: "own",
    sync: false,
    async decide(call, now = 0) {
      const planned = plan(call, now);
      if (gap !== undefined) await gap();
      write(planned);
      return planned.decision;
    },
    async decideAll(calls, now = 0) {
      const plans = calls.map((call) => plan(call, now));
      const decisions = plans.map(({ decision }) => decision);
      const all = combined(decisions, now);
      if (all.ok) for (const planned of plans) write(planned);
      return all;
    },
    reset: async (limit, key) => void states.delete(identity(limit, key)),
    getValue: async (limit, key, now = 0) =>
      limit.project(states.get(identity(limit, key)) ?? null, now, start(limit, key)),
  };
}

const rounding = (round: (value: number) => number): AsyncStore =>
  own({ stored: ({ value, ts }) => ({ value: round(value), ts }) });

function answering(change: (decision: Decision) => Decision): AsyncStore {
  const store = own();
  return { ...store, decide: async (call, now) => change(await store.decide(call, now)) };
}

/** Of two concurrent calls on different keys of a limit, each gets the decision of the other. */
function swapping(): AsyncStore {
  const store = own();
  let held: { call: Call; decision: Decision; answer: (decision: Decision) => void } | undefined;
  return {
    ...store,
    async decide(call, now) {
      const decision = await store.decide(call, now);
      if (held !== undefined && held.call.limit === call.limit && held.call.key !== call.key) {
        const { answer, decision: other } = held;
        held = undefined;
        answer(decision);
        return other;
      }
      return new Promise((answer) => {
        held = { call, decision, answer };
        void turn().then(() => {
          held = undefined;
          answer(decision);
        });
      });
    },
  };
}

/** Takes one after another, and gives back what was taken before a denial. */
function givingBack(): AsyncStore {
  const store = own();
  return {
    ...store,
    async decideAll(calls, now = 0) {
      const decisions: Decision[] = [];
      for (const call of calls) decisions.push(await store.decide(call, now));
      const all = combined(decisions, now);
      const taken = calls.filter((call, i) => !all.ok && call.op === "take" && decisions[i]?.ok);
      for (const call of taken) await store.decide({ ...call, op: "give", reserve: false }, now);
      return all;
    },
  };
}

/** Decides with the config that a name had first. */
function remembering(): AsyncStore {
  const first = new Map<string, Limit>();
  return own({
    limit(limit) {
      first.set(limit.name, first.get(limit.name) ?? limit);
      return first.get(limit.name) as Limit;
    },
  });
}

const wrong: Record<string, [create: () => AsyncStore, failure: string]> = {
  "loses the writes of give": [
    () => own({ stored: (state, { op }) => (op === "give" ? null : state) }),
    "give adds tokens, up to the capacity: bucket: what getValue returns then: expected 10, got 4",
  ],
  "writes what was read before another write": [
    () => own({ gap: turn }),
    "concurrent calls on one key are granted exactly the capacity: granted of 240 on 100: expected 100, got 240",
  ],
  "stores one write behind": [
    () => own({ stored: (_, __, before) => before ?? { value: 0, ts: 0 } }),
    "grants at retryAt, and denies one millisecond before",
  ],
  "stores 15 digits": [
    () => rounding((value) => Number(value.toPrecision(15))),
    "keeps every bit of a value: 0.7 of 1: expected 0.30000000000000004, got 0.3",
  ],
  "stores 16 digits": [
    () => rounding((value) => Number(value.toPrecision(16))),
    "keeps every bit of a value: 0.7 of 1: expected 0.30000000000000004, got 0.3",
  ],
  "stores millionths": [
    () => rounding((value) => Math.round(value * 1e6) / 1e6),
    "keeps every bit of a value: 0.7 of 1: expected 0.30000000000000004, got 0.3",
  ],
  "has a clock that is 1 ms ahead": [
    () => own({ now: (now) => now + 1 }),
    "grants at retryAt, and denies one millisecond before: bucket: retryAfter: expected 85716, got 85715",
  ],
  "returns a resetAt that is 1 ms late": [
    () => answering((decision) => ({ ...decision, resetAt: decision.resetAt + 1 })),
    "resetAt is the first millisecond at which the limit is full: bucket, 1 ms before resetAt: whether 10 of 10 is full: expected false, got true",
  ],
  "compares keys by their accents and case": [
    () => own({ identity: (limit, key) => limit.identity(key).normalize("NFC").toLowerCase() }),
    'keeps every odd key apart from every other: the key "A" is taken for the key "a"',
  ],
  "gives back what it took before a denial": [
    givingBack,
    "concurrent limitAll calls, in any order of limits, take from all or from none",
  ],
  "answers in another order": [
    swapping,
    "concurrent calls on different keys each get their own decision: k0: expected 100, got 99.75",
  ],
  "decides with the first config of a name": [
    remembering,
    "a changed config takes effect at the next call, on the tokens that are left",
  ],
  "starts the windows of all keys at 0": [
    () => own({ start: (limit) => Number(limit.policy.start ?? 0) }),
    "the windows of a key begin where its name and key place them: no key: ms between the window and those of the key's start: expected 0",
  ],
};

/** The failures of the suite on a store, each with the title of its test. */
async function failures(create: () => AsyncStore): Promise<string[]> {
  const tests: [string, () => Promise<void>][] = [];
  storeSuite({ test: (title, body) => tests.push([title, body]), create });
  const failed: string[] = [];
  for (const [title, body] of tests) {
    await body().catch((error: Error) => failed.push(`${title}: ${error.message}`));
  }
  return failed;
}

test("the store on a Map passes, with nothing wrong", async () => {
  expect(await failures(own)).toEqual([]);
});

test.each(Object.entries(wrong))("a store that %s fails, with the reason", async (_, [create, failure]) => {
  expect((await failures(create)).join("\n")).toContain(failure);
});
