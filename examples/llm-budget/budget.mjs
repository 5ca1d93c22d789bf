// Limits a language model's tokens, per minute and per day at once: node examples/llm-budget/budget.mjs
//
// The cost of a call is known only afterwards. So an estimate is taken from both limits, the call runs, and the difference is
// given back or charged. If the minute has too few tokens, the call reserves them and waits.
import { DAY, defineLimits, SECOND } from "tidegate";
import { spend } from "tidegate/budget";

const limits = defineLimits({
  // A provider says "tokens per minute"; a shorter period at the same rate spreads them better. (Here: one second.)
  tokensPerMinute: { kind: "token bucket", rate: 2000, period: SECOND, capacity: 2000 },
  tokensPerDay: { kind: "fixed window", rate: 6000, period: DAY, maxReserved: 0 },
});

/** Stands for a model: uses as many tokens as the prompt wants, and reports the usage. */
async function complete(prompt, { maxTokens }) {
  const answered = Math.min(prompt.wants, maxTokens);
  return { text: "…", usage: { total: prompt.tokens + answered } };
}

async function chat(prompt, user = "user 7") {
  const maxTokens = 1000;
  const names = ["tokensPerMinute", "tokensPerDay"];
  const options = { limits: names, key: user, estimate: prompt.tokens + maxTokens, wait: 10 * SECOND };
  const answer = await spend(limits, options, async ({ used }) => {
    const completion = await complete(prompt, { maxTokens });
    used(completion.usage.total);
    return completion;
  });
  const left = names.map((name) => Math.floor(limits.getValue(name, { key: user }).value));
  if (answer.ok) {
    const waited = answer.decided.retryAfter === undefined ? "at once" : "after its turn had come";
    console.log(`${answer.used} tokens, ${waited}; left for the day: ${left[1]}`);
  } else {
    const denied = answer.decided.decisions.find(({ ok }) => !ok) ?? answer.decided.decisions[0];
    console.log(`denied by ${denied.policy.name}; left for the day: ${left[1]}`);
  }
}

await chat({ tokens: 500, wants: 200 }); // 1500 taken, 800 given back
await chat({ tokens: 1000, wants: 5000 }); // all of it used, and the minute's budget is spent
await chat({ tokens: 900, wants: 100 }); // waits
await chat({ tokens: 2000, wants: 100 }); // more than is left for the day
