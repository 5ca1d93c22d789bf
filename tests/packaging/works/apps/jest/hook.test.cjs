const { act, createElement } = require("react");
const { createRoot } = require("react-dom/client");
const { remoteLimits, useRateLimit } = require("tidegate/react");

const now = 1_800_000_000_000;
const config = { kind: "token bucket", rate: 10, period: 60_000, capacity: 10 };
const from = remoteLimits(() => new Promise(() => {}));

function Send() {
  const { ok, remaining } = useRateLimit("send", { from, initial: { value: 7, ts: now, config, now } });
  return createElement("p", null, `${ok} ${remaining}`);
}

test("useRateLimit renders", async () => {
  globalThis.IS_REACT_ACT_ENVIRONMENT = true;
  const place = document.createElement("div");
  const root = createRoot(place);
  await act(async () => root.render(createElement(Send)));
  expect(place.innerHTML).toMatch(/^<p>true (7|8|9|10)<\/p>$/);
  await act(async () => root.unmount());
});
