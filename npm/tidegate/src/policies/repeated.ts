/** The path of a field in a document: names and array indices. */
type Path = readonly (string | number)[];

interface Frame {
  /** An object's names so far; none for an array. */
  readonly names: Set<string> | undefined;
  /** The current name or index. */
  step: string | number;
}

/** The depth of the check (`DEEPEST` in crates/policy-wasm), and so of a path. */
const DEEPEST = 32;
// Lazy: a greedy loop stores a place to return to for each character, and a long text would overflow the stack.
const TOKEN = /"(?:[^"\\]|\\.)*?"|[{}[\],]/g;

/**
 * Fields that appear more than once in one object. `JSON.parse` silently keeps the last, so a reader of the file may see
 * another limit than the one in force. The text must be JSON. Fields deeper than 32 levels are not reported.
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
