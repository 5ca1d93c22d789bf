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

/**
 * Fields that appear more than once in one object. `JSON.parse` silently keeps the last, so a reader of the file may see
 * another limit than the one in force. The text must be JSON. Fields deeper than 32 levels are not reported.
 */
export function repeated(text: string): Path[] {
  const found: Path[] = [];
  const frames: Frame[] = [];
  let naming = false;
  for (let at = 0; at < text.length; at++) {
    const token = text[at];
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
    } else if (token === '"') {
      const start = at;
      at = endOf(text, start);
      if (!naming || frame?.names === undefined) continue;
      frame.step = JSON.parse(text.slice(start, at + 1)) as string;
      if (frame.names.has(frame.step) && frames.length <= DEEPEST) found.push(frames.map(({ step }) => step));
      frame.names.add(frame.step);
      naming = false;
    }
  }
  return found;
}

/** The index of the quote that ends the text in quotes at `start`. */
function endOf(text: string, start: number): number {
  let end = start + 1;
  while (text[end] !== '"') end += text[end] === "\\" ? 2 : 1;
  return end;
}
