import { onMount } from "solid-js";
import { answers } from "../answers.js";

export default function Home() {
  const text = JSON.stringify(answers());
  onMount(() => {
    globalThis.answers = text;
  });
  return <p>{text}</p>;
}
