/** Where in a document a field is: names, and places in arrays. */
export type Path = readonly (string | number)[];

interface Frame {
  /** An object's names so far; none for an array. */
  readonly names: Set<string> | undefined;
  /** The name or the place that is being read. */
  step: string | number;
}

/** The check reads no deeper (`DEEPEST` in crates/policy-wasm), so that a path has at most this many steps. */
const DEEPEST = 32;
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],]/g;

/**
 * Fields that a text gives more than once in one object. `JSON.parse` keeps the last and says nothing, so that what a
 * reader of the file believes is not what is in force. The text must be JSON. Deeper than 32 levels nothing is reported.
 */
export function repeated(text: string): Path[] {
  const found: Path[] = [];
  const frames: Frame[] = [];
  let naming = false;
  for (const [token] of text.matchAll(TOKEN)) {
    const frame = frames.at(-1);
    if (token === "{" || token === "[") {
      frames.push({ names: token === "{" ? new Set() : undefined, step: 0 });
      naming = token === "{";
    } else if (token === "}" || token === "]") {
      frames.pop();
      naming = false;
    } else if (token === ",") {
      naming = frame?.names !== undefined;
      if (frame !== undefined && !naming) frame.step = (frame.step as number) + 1;
    } else if (naming && frame?.names !== undefined) {
      frame.step = JSON.parse(token) as string;
      if (frame.names.has(frame.step) && frames.length <= DEEPEST) found.push(frames.map(({ step }) => step));
      frame.names.add(frame.step);
      naming = false;
    }
  }
  return found;
}
