"use client";
import { useEffect, useState } from "react";
import { remoteLimits, useRateLimit } from "tidegate/react";
import { answers } from "../answers.js";

const from = remoteLimits(() => new Promise(() => {}));

export function Send({ initial }) {
  const { remaining } = useRateLimit("send", { from, initial });
  const [text, setText] = useState("");
  useEffect(() => {
    setText(JSON.stringify(answers()));
    globalThis.answers = JSON.stringify(answers());
  }, []);
  return (
    <p>
      {`remaining ${remaining}`} {text}
    </p>
  );
}
