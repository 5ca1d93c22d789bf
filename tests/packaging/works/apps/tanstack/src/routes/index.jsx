import { createFileRoute } from "@tanstack/react-router";
import { useEffect } from "react";
import { answers } from "../answers.js";
import { send } from "../send.js";

/** The server function allows two calls; the page sees the third fail with the denial's text. */
async function calls() {
  const results = [];
  for (let at = 0; at < 3; at++) results.push(await send().catch((error) => /too few tokens/.test(error.message)));
  return JSON.stringify(results) === '["sent","sent",true]' ? answers() : JSON.stringify(results);
}

export const Route = createFileRoute("/")({ component: Home });

function Home() {
  useEffect(() => {
    calls().then((text) => {
      globalThis.answers = text;
    });
  }, []);
  return <p>{answers()}</p>;
}
