const { createElement } = require("react");
const { renderToString } = require("react-dom/server.browser");
const { remoteLimits, useRateLimit } = require("tidegate/react");

const now = 1_800_000_000_000;
const config = { kind: "token bucket", rate: 10, period: 60_000, capacity: 10 };
const from = remoteLimits(() => ({ value: 7, ts: now, config, now }));

function Send() {
  const { ok, remaining } = useRateLimit("send", { from, initial: { value: 7, ts: now, config, now } });
  return createElement("p", null, `${ok} ${remaining}`);
}

test("useRateLimit renders", () => {
  expect(renderToString(createElement(Send))).toBe("<p>true 7</p>");
});
