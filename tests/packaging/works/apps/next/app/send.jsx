"use client";
import { useEffect, useState } from "react";
import { remoteLimits, useRateLimit } from "tidegate/react";
import { answers } from "../answers.js";
import { subscribe } from "./actions.js";

const from = remoteLimits(() => new Promise(() => {}));

/** Calls the server action as often as `answers` calls its limit. */
async function actions() {
  const results = [];
  for (const address of ["a", "a", "a", "b"]) results.push(await subscribe(address));
  return results.map((result) => (result.rateLimited === undefined ? true : result.rateLimited.status !== 429));
}

export function Send({ initial }) {
  const { remaining } = useRateLimit("send", { from, initial });
  const [text, setText] = useState("");
  useEffect(() => {
    const own = JSON.stringify(answers());
    setText(own);
    actions().then((results) => {
      const acted = JSON.stringify(results);
      globalThis.answers = acted === own ? own : `the action: ${acted}, the page: ${own}`;
    });
  }, []);
  return (
    <p>
      {`remaining ${remaining}`} {text}
    </p>
  );
}
