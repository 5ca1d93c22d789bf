// Tokens of a language model, per minute and per day at once: node examples/llm-budget/budget.mjs
//
// What a call costs is known only afterwards. So an estimate is set aside on both limits, the call runs, and the difference is
// given back or charged. Where there is too little for the minute, the call reserves its turn and waits for it.
import { DAY, defineLimits, SECOND } from "tidegate";
import { spend } from "tidegate/budget";

const limits = defineLimits({
  // A provider says "tokens per minute"; a shorter period of the same rate spreads them better. (Here: a quick example.)
  tokensPerMinute: { kind: "token bucket", rate: 2000, period: SECOND, capacity: 2000 },
  tokensPerDay: { kind: "fixed window", rate: 6000, period: DAY, maxReserved: 0 },
});

/** Stands for a model: it answers with as many tokens as the prompt asks for, and tells what that was. */
async function complete(prompt, { maxTokens }) {
  const answered = Math.min(prompt.wants, maxTokens);
  return { text: "…", usage: { total: prompt.tokens + answered } };
}

async function complete(prompt, user = "user 7") {
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

await complete({ tokens: 500, wants: 200 }); // 1500 set aside, 800 given back
await complete({ tokens: 1000, wants: 5000 }); // all of it used, and the minute's budget is spent
await complete({ tokens: 900, wants: 100 }); // waits
await complete({ tokens: 2000, wants: 100 }); // more than a day has left
