/** The page. */
import { useEffect, useRef, useState } from "react";
import { configOf, type Draft, FIRST } from "../model/policy.ts";
import type { Lab } from "../model/lab.ts";
import { SCENARIOS, type Scenario } from "../model/scenarios.ts";
import { Generator, type Traffic } from "../model/traffic.ts";
import mark from "../mark.svg";
import { Code } from "./code.tsx";
import { Instrument } from "./instrument.tsx";
import { Log } from "./log.tsx";
import { Policy } from "./policy.tsx";
import { TimelinePanel } from "./timeline.tsx";
import { type RequestShape, Requests } from "./traffic.tsx";

const TICK_MS = 40;

/** Sends requests by the pattern while the page is open. */
function useTraffic(lab: Lab, traffic: Traffic, { count, reserve }: RequestShape): void {
  const generator = useRef<Generator>(undefined);
  generator.current ??= new Generator();
  generator.current.set(traffic);
  const send = useRef(async () => (await lab.call("limit", count, reserve)).here);
  send.current = async () => (await lab.call("limit", count, reserve)).here;
  useEffect(() => {
    const timer = setInterval(() => {
      if (!lab.busy) generator.current?.tick(lab.now(), () => send.current());
    }, TICK_MS);
    return () => clearInterval(timer);
  }, [lab]);
}

function Scenarios({ chosen, onChoose }: { chosen: number; onChoose: (index: number) => void }) {
  return (
    <nav className="scenarios" aria-label="What to see">
      <ul>
        {SCENARIOS.map(({ title }, index) => (
          <li key={title}>
            <button type="button" aria-pressed={index === chosen} onClick={() => onChoose(index)}>
              {title}
            </button>
          </li>
        ))}
      </ul>
      <p>{SCENARIOS[chosen]?.look ?? "Your own policy and traffic."}</p>
    </nav>
  );
}

export function App({ lab }: { lab: Lab }) {
  const [draft, setDraft] = useState<Draft>(FIRST);
  const [traffic, setTraffic] = useState<Traffic>({ pattern: "off", perSecond: 5, size: 30 });
  const [shape, setShape] = useState<RequestShape>({ count: 1, reserve: false });
  const [scenario, setScenario] = useState(-1);
  const [said, say] = useState("");
  useTraffic(lab, traffic, shape);

  const define = (next: Draft): void => {
    setDraft(next);
    lab.define(configOf(next));
  };
  /** Manual requests are announced to screen readers; traffic is not. */
  const send = async (times: number): Promise<void> => {
    const entries = await Promise.all(
      Array.from({ length: times }, () => lab.call("limit", shape.count, shape.reserve)),
    );
    const ok = entries.filter(({ here }) => here.ok).length;
    const left = entries.at(-1)?.here.value ?? 0;
    say(`${ok} granted, ${times - ok} denied; the value is ${left.toFixed(1)}.`);
  };
  const reset = (): void => {
    lab.reset();
    say("Both sides are full again.");
  };
  const choose = (index: number): void => {
    const { draft: policy, traffic: pattern, count, reserve, burst, title } = SCENARIOS[index] as Scenario;
    setScenario(index);
    setShape({ count, reserve });
    setTraffic(pattern);
    define(policy);
    lab.reset();
    for (let i = 0; i < burst; i++) void lab.call("limit", count, reserve);
    say(`${title}: begun.`);
  };
  const give = async (): Promise<void> => {
    const { here } = await lab.call("give", shape.count, false);
    say(`Given back; the value is ${here.value.toFixed(1)}.`);
  };

  return (
    <>
      <header className="head">
        <h1>
          <img src={mark} alt="" width="36" height="36" /> Tidegate <span>playground</span>
        </h1>
        <p>
          A rate limit is two numbers, <code>value</code> and <code>ts</code>. Set a policy, send requests, and watch
          both.
        </p>
      </header>
      <Scenarios chosen={scenario} onChoose={choose} />
      <main>
        <Instrument lab={lab} reserve={shape.reserve} />
        <div className="controls">
          <Requests
            {...{ shape, traffic }}
            onShape={setShape}
            onTraffic={(next) => {
              setTraffic(next);
              setScenario(-1);
            }}
            onSend={(times) => void send(times)}
            onGive={() => void give()}
            onReset={reset}
          />
          <Policy
            draft={draft}
            onChange={(next) => {
              define(next);
              setScenario(-1);
            }}
          />
        </div>
        <div className="views">
          <TimelinePanel lab={lab} />
          <Log lab={lab} />
          <Code {...{ draft, say }} reserve={shape.reserve} />
        </div>
      </main>
      <p className="visually-hidden" role="status">
        {said}
      </p>
    </>
  );
}
