// The WebAssembly of crates/replay, compiled when the first replay begins.
import { readFileSync } from "node:fs";
import { initSync, Replay } from "./generated/replay.js";
import type { Format, Options, Replayed, Spool } from "./generated/replay.js";

let loaded = false;

/** A replay under way, as crates/replay has it. */
export function begin(options: Options, spool: Spool): Replay {
  if (!loaded) initSync({ module: readFileSync(new URL("./generated/replay_bg.wasm", import.meta.url)) });
  loaded = true;
  // So that no log can aim at collisions of the keys' hashes.
  return new Replay(options, crypto.getRandomValues(new BigUint64Array(2)), spool);
}

export type { Format, Options, Replay, Replayed, Spool };
