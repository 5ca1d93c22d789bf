/**
 * Random policies, clocks and requests through a real server, each answer compared with the core's own on a state that
 * only the core ever touched. Where the script rounded once differently, the next answer on that key would differ.
 *
 * TIDEGATE_REDIS_STEPS=5000000 runs more; TIDEGATE_SEED=n runs the steps of a failure again.
 */
import { expect, test } from "vitest";
import type { Config } from "tidegate";
import { type Call, type Decision, Limit } from "tidegate/store";
import { redis, type RedisStore } from "tidegate/redis";
import { restLike } from "./clients.ts";
import { client, withServer } from "./fixture.ts";
import { Model } from "../model.ts";
import { Random } from "../random.ts";

const STEPS = Number(process.env["TIDEGATE_REDIS_STEPS"] ?? 120_000);
const SEED = Number(process.env["TIDEGATE_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

withServer();

/** A number spread over the magnitudes: whole, fractional, with few bits or with all of them. */
function amount(random: Random, from: number, to: number): number {
  const x = Math.exp(Math.log(from) + random.next() * (Math.log(to) - Math.log(from)));
  const shape = random.below(4);
  const shaped = shape === 0 ? x : shape === 1 ? Math.round(x) : shape === 2 ? Math.round(x * 10) / 10 : Math.fround(x);
  return Math.min(Math.max(shaped, 0), to);
}

const MOST = 2 ** 40;

function policy(random: Random): Config {
  const rate = Math.max(amount(random, 1e-6, random.chance(0.3) ? MOST : 1e4), 1e-9);
  const config = {
    rate,
    period: Math.max(1, Math.round(amount(random, 1, random.chance(0.3) ? MOST : 1e5))),
    ...(random.chance(0.6)
      ? { capacity: random.chance(0.1) ? 0 : amount(random, 0.1, random.chance(0.2) ? MOST : rate * 10 + 1) }
      : {}),
    ...(random.chance(0.5) ? { maxReserved: random.chance(0.2) ? 0 : amount(random, 0.1, rate * 20 + 1) } : {}),
  };
  if (config.capacity !== undefined) config.capacity = Math.min(config.capacity, MOST);
  if (config.maxReserved !== undefined) config.maxReserved = Math.min(config.maxReserved, MOST);
  if (random.chance(0.5)) return { kind: "token bucket", ...config };
  if (random.chance(0.3)) return { kind: "fixed window", ...config, start: "first request" };
  const start = random.chance(0.5) ? {} : { start: Math.round((random.next() - 0.5) * 2e12) };
  return { kind: "fixed window", ...config, ...start };
}

function clock(random: Random, now: number, config: Config): number {
  const step = random.below(20);
  if (step === 0) return Math.max(0, now - Math.floor(random.next() * 10_000));
  if (step === 1) return now + Math.floor(random.next() * 4_000_000);
  if (step === 2) return Math.max(0, now - Math.floor(random.next() * 8_000_000));
  if (step < 6) return now;
  if (step < 10) return now + random.below(4);
  const wait = (random.next() * 3 * Number(config.period)) / (random.chance(0.5) ? 1 : config.rate);
  return Math.min(now + Math.floor(Math.min(wait, 1e13)), 2 ** 52);
}

function request(random: Random, limit: Limit, key: string): Call {
  const op = random.pick(["take", "take", "take", "take", "check", "give", "charge", "block"] as const);
  if (op === "block") {
    const longest = Math.min(limit.policy.period * 5, MOST);
    return { op, limit, key, count: Math.ceil(amount(random, 1, longest)), reserve: false };
  }
  const size = limit.policy.capacity + limit.policy.rate;
  const count = random.chance(0.1) ? 0 : random.chance(0.3) ? 1 : Math.min(amount(random, 1e-3, size * 1.2 + 1), MOST);
  return { op, limit, key, count, reserve: (op === "take" || op === "check") && random.chance(0.3) };
}

const plain = (decision: Decision) => ({ ...decision, policy: undefined });

async function run(store: RedisStore, steps: number, aTurn: number, seed: number): Promise<void> {
  const random = new Random(seed);
  for (let done = 0; done < steps; ) {
    const keys = Array.from({ length: 4 }, (_, i) => `k${seed}:${done}:${i}`);
    let limits = Array.from({ length: 3 }, (_, i) => new Limit(`limit${i}`, policy(random)));
    const model = new Model();
    let now = Math.floor(random.next() * 2e12);
    for (let turn = 0; turn < 40; turn++) {
      if (random.chance(0.03)) limits = limits.map((limit) => new Limit(limit.name, policy(random)));
      const calls = Array.from({ length: 1 + random.below(aTurn) }, () =>
        request(random, random.pick(limits), random.pick(keys)),
      );
      // Several identical ones in a row are sent as one.
      for (let more = random.below(3); more > 0 && calls.length < 60; more--) {
        calls.splice(random.below(calls.length), 0, ...Array<Call>(1 + random.below(3)).fill(random.pick(calls)));
      }
      now = clock(random, now, random.pick(limits).policy as Config);
      const decisions = await Promise.all(calls.map((call) => store.decide(call, now)));
      for (const [i, call] of calls.entries()) {
        const expected = plain(model.decide(call, now));
        expect(
          plain(decisions[i] as Decision),
          `seed ${seed}, after ${done} steps, ${JSON.stringify({ call, now })}`,
        ).toEqual(expected);
        done++;
      }
    }
    await client.flushall();
  }
}

test(`${STEPS} random steps answer as the core does, in turns of many`, { timeout: 3_600_000 }, async () => {
  await run(redis(client, { rememberDenials: 0 }), STEPS, 40, SEED);
});

test("random steps, one after another, answer as the core does, with denials remembered", {
  timeout: 600_000,
}, async () => {
  await run(redis(client), STEPS / 10, 1, SEED + 1);
});

test("random steps by the server's clock answer as the core does, also on the fast path of takes without debt", {
  timeout: 600_000,
}, async () => {
  const random = new Random(SEED + 4);
  for (let done = 0; done < STEPS / 4; ) {
    const store = redis(client, { rememberDenials: 0 });
    const limits = Array.from({ length: 3 }, (_, i) => new Limit(`limit${i}`, policy(random)));
    const model = new Model();
    for (let turn = 0; turn < 40; turn++) {
      const calls = Array.from({ length: random.chance(0.3) ? 1 : 1 + random.below(30) }, () => {
        const call = request(random, random.pick(limits), `s${random.below(12)}`);
        return random.chance(0.8) ? { ...call, op: "take" as const, reserve: false } : call;
      });
      const answers = await Promise.all(calls.map((call) => store.decide(call, undefined)));
      for (const [i, call] of calls.entries()) {
        const answer = answers[i] as Decision;
        // The clock is the only thing that the model takes over.
        const expected = plain(model.decide(call, answer.now));
        expect(plain(answer), `seed ${SEED}, ${JSON.stringify(call)}`).toEqual(expected);
        done++;
      }
    }
    await client.flushall();
  }
});

test("random steps in the text form, for clients that carry no bytes, answer as the core does", {
  timeout: 600_000,
}, async () => {
  await run(redis(restLike(client), { rememberDenials: 0 }), STEPS / 4, 40, SEED + 2);
});

test("random limitAll answer as the core does, also of limits of several shards, which are one bucket here", {
  timeout: 600_000,
}, async () => {
  const random = new Random(SEED + 3);
  for (let round = 0; round < STEPS / 1000; round++) {
    const store = redis(client, { rememberDenials: 0 });
    const limits = Array.from({ length: 4 }, (_, i) => {
      return new Limit(`all${i}`, { ...policy(random), shards: i < 2 ? 1 : 2 + random.below(30) });
    });
    let now = Math.floor(random.next() * 2e12);
    const model = new Model();
    for (let turn = 0; turn < 12; turn++) {
      now = clock(random, now, random.pick(limits).policy as Config);
      const key = () => `r${round}:${random.below(2)}`;
      // Each entry is sent in one turn; those of several requests are all granted or none.
      const entries = Array.from({ length: 1 + random.below(5) }, (): Call[] => {
        if (random.chance(0.5)) return [request(random, random.pick(limits), key())];
        const calls = Array.from({ length: 2 + random.below(3) }, (): Call => {
          return { ...request(random, random.pick(limits), key()), op: "take" };
        });
        // A limiter adds up requests on one limit and key before a store has them.
        return [...new Map(calls.map((call) => [call.limit.identity(call.key), call])).values()];
      });
      const answers = await Promise.all(
        entries.map(async ([first, ...rest]) =>
          rest.length === 0
            ? [await store.decide(first as Call, now)]
            : (await store.decideAll([first as Call, ...rest], now)).decisions,
        ),
      );
      for (const [i, calls] of entries.entries()) {
        const expected = model.decideAll(calls, now).decisions;
        expect(answers[i]?.map(plain), `seed ${SEED}, round ${round}, turn ${turn}`).toEqual(expected.map(plain));
      }
    }
  }
});
