// A common first implementation: a Map of `{ value, ts }`.

export function create({ capacity, rate, periodMs }) {
  const states = new Map();
  const policy = { kind: "token bucket", rate, period: periodMs, capacity };

  function decide(key) {
    const now = Date.now();
    let state = states.get(key);
    if (state === undefined) {
      state = { value: capacity, ts: now };
      states.set(key, state);
    } else if (now > state.ts) {
      state.value = Math.min(state.value + ((now - state.ts) * rate) / periodMs, capacity);
      state.ts = now;
    }
    const ok = state.value >= 1;
    if (ok) state.value -= 1;
    const retryAt = ok ? undefined : Math.ceil(state.ts + ((1 - state.value) * periodMs) / rate);
    return {
      ok,
      value: state.value,
      ts: state.ts,
      remaining: Math.floor(state.value),
      limit: capacity,
      retryAt,
      retryAfter: retryAt === undefined ? undefined : retryAt - now,
      resetAt: Math.ceil(state.ts + ((capacity - state.value) * periodMs) / rate),
      reserved: false,
      reason: undefined,
      now,
      policy,
    };
  }

  return { kind: "token bucket", decide };
}
