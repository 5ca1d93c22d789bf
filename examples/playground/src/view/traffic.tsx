/** Requests: manual, or by a pattern. */
import { type Pattern, PATTERNS, type Traffic } from "../model/traffic.ts";
import { Choice, Panel, Slider, Switch } from "./parts.tsx";

export interface RequestShape {
  count: number;
  reserve: boolean;
}

const TITLES: Record<Pattern, string> = {
  off: "none",
  steady: "steady",
  sixty: "60 a second",
  bursty: "bursty",
  herd: "herd",
  "herd with jitter": "herd, jitter",
};

const HINTS: Record<Pattern, string> = {
  off: "Only what you send by hand.",
  steady: "One after another, evenly.",
  sixty: "Sixty requests a second, evenly.",
  bursty: "A burst every 4 seconds.",
  herd: "Clients come every 12 seconds, all at once; denied, they come back at their retryAt.",
  "herd with jitter": "The same clients; each comes back at jitter(decision), which is never before its retryAt.",
};

interface Props {
  shape: RequestShape;
  traffic: Traffic;
  onShape: (shape: RequestShape) => void;
  onTraffic: (traffic: Traffic) => void;
  onSend: (times: number) => void;
  onGive: () => void;
  onReset: () => void;
}

export function Requests({ shape, traffic, onShape, onTraffic, onSend, onGive, onReset }: Props) {
  const { pattern, perSecond, size } = traffic;
  const tokens = shape.count === 1 ? "token" : "tokens";
  return (
    <Panel title="Requests" hint={HINTS[pattern]}>
      <div className="buttons">
        <button type="button" className="primary" onClick={() => onSend(1)}>
          Send one
        </button>
        <button type="button" className="primary" onClick={() => onSend(size)}>
          Send a burst of {size}
        </button>
        <button type="button" onClick={onGive}>
          Give {shape.count} back
        </button>
        <button type="button" onClick={onReset}>
          Reset
        </button>
      </div>
      <Slider
        label="tokens a request"
        unit={tokens}
        min={1}
        max={50}
        value={shape.count}
        onChange={(count) => onShape({ ...shape, count })}
      />
      <Switch
        label="reserve: may take ahead of time"
        checked={shape.reserve}
        onChange={(reserve) => onShape({ ...shape, reserve })}
      />
      <Choice
        label="traffic"
        options={PATTERNS}
        titles={TITLES}
        value={pattern}
        onChange={(next) => onTraffic({ ...traffic, pattern: next })}
      />
      {pattern === "steady" ? (
        <Slider
          label="steady traffic"
          unit="a second"
          min={1}
          max={60}
          value={perSecond}
          onChange={(next) => onTraffic({ ...traffic, perSecond: next })}
        />
      ) : null}
      <Slider
        label={pattern.startsWith("herd") ? "clients of the herd" : "requests of a burst"}
        unit=""
        min={2}
        max={60}
        value={size}
        onChange={(next) => onTraffic({ ...traffic, size: next })}
      />
    </Panel>
  );
}
