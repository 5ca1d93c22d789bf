/** The policy, by sliders. */
import { type Draft, KINDS, PERIODS, RANGES, seconds, sentence } from "../model/policy.ts";
import { Choice, Panel, Slider, Switch } from "./parts.tsx";

/** The initial debt limit, when it was unbounded before. */
const SOME_RESERVED = 40;

export function Policy({ draft, onChange }: { draft: Draft; onChange: (draft: Draft) => void }) {
  const set = (change: Partial<Draft>): void => onChange({ ...draft, ...change });
  const { kind, rate, period, capacity, maxReserved, shards } = draft;
  return (
    <Panel title="Policy" hint={sentence(draft)}>
      <Choice label="kind" options={KINDS} value={kind} onChange={(next) => set({ kind: next })} />
      <Slider label="rate" unit="tokens" {...RANGES.rate} value={rate} onChange={(next) => set({ rate: next })} />
      <Slider
        label="period"
        unit="s"
        min={0}
        max={PERIODS.length - 1}
        value={PERIODS.indexOf(period as (typeof PERIODS)[number])}
        shown={seconds(period)}
        onChange={(next) => set({ period: PERIODS[next] ?? 1_000 })}
      />
      <Slider
        label="capacity"
        unit="tokens"
        {...RANGES.capacity}
        value={capacity}
        onChange={(next) => set({ capacity: next })}
      />
      <Slider
        label="maxReserved"
        unit="tokens"
        {...RANGES.maxReserved}
        value={maxReserved ?? RANGES.maxReserved.max}
        disabled={maxReserved === undefined}
        {...(maxReserved === undefined ? { shown: "no end" } : {})}
        onChange={(next) => set({ maxReserved: next })}
      />
      <Switch
        label="debt has no end"
        checked={maxReserved === undefined}
        onChange={(endless) => set({ maxReserved: endless ? undefined : SOME_RESERVED })}
      />
      <Slider
        label="shards"
        unit={shards === 1 ? "row" : "rows"}
        {...RANGES.shards}
        value={shards}
        onChange={(next) => set({ shards: next })}
      />
    </Panel>
  );
}
