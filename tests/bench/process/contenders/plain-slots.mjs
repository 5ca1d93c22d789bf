// The fastest token bucket that we found in plain JavaScript: one Map from key to slot, the two numbers in typed
// arrays, and no allocation except the result. It never evicts, and its retryAt is the closed form's.

export function create({ capacity, rate, periodMs }) {
  const slots = new Map();
  let values = new Float64Array(1024);
  let stamps = new Float64Array(1024);
  let used = 0;
  const perMs = rate / periodMs;
  const msPerToken = periodMs / rate;
  const policy = { kind: "token bucket", rate, period: periodMs, capacity };

  function grow() {
    const widerValues = new Float64Array(values.length * 2);
    widerValues.set(values);
    values = widerValues;
    const widerStamps = new Float64Array(stamps.length * 2);
    widerStamps.set(stamps);
    stamps = widerStamps;
  }

  function decide(key) {
    const now = Date.now();
    let slot = slots.get(key);
    let value = capacity;
    let ts = now;
    if (slot === undefined) {
      slot = used++;
      if (slot === values.length) grow();
      slots.set(key, slot);
    } else {
      value = values[slot];
      const stamp = stamps[slot];
      if (now > stamp) {
        value += (now - stamp) * perMs;
        if (value > capacity) value = capacity;
      } else {
        ts = stamp;
      }
    }
    const left = value - 1;
    if (left >= 0) {
      values[slot] = left;
      stamps[slot] = ts;
      return {
        ok: true,
        value: left,
        ts,
        remaining: Math.floor(left),
        limit: capacity,
        retryAt: undefined,
        retryAfter: undefined,
        resetAt: Math.ceil(ts + (capacity - left) * msPerToken),
        reserved: false,
        reason: undefined,
        now,
        policy,
      };
    }
    const retryAt = Math.ceil(ts - left * msPerToken);
    return {
      ok: false,
      value,
      ts,
      remaining: Math.floor(value),
      limit: capacity,
      retryAt,
      retryAfter: retryAt - now,
      resetAt: Math.ceil(ts + (capacity - value) * msPerToken),
      reserved: false,
      reason: undefined,
      now,
      policy,
    };
  }

  return { kind: "token bucket", decide };
}
