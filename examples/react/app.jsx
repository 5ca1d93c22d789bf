// A button that is enabled when the server would grant the request: it calls the server once, and counts down by itself.
import { createRoot } from "react-dom/client";
import { remoteLimits, useRateLimit } from "tidegate/react";

const limits = remoteLimits((name) => fetch(`/limits/${name}`).then((response) => response.json()));

function Send() {
  const { ok, remaining, retryAfter = 0, learn } = useRateLimit("message", { from: limits });
  // The response is the decision, granted or not, so no second request is needed.
  const send = async () => learn(await (await fetch("/messages", { method: "POST" })).json());
  return (
    <>
      <button type="button" disabled={ok === false} onClick={send}>
        {ok === false ? `Send (${retryAfter / 1000} s)` : "Send"}
      </button>
      <output>{remaining} left</output>
    </>
  );
}

createRoot(document.querySelector("main")).render(<Send />);
