/** Checks a document, which the core parses, and lists its mistakes. */
import { load } from "#policy-host";
import { check } from "../engine/generated/policy.js";
import { isPromise } from "../limit/realms.ts";
import { InputError, showObject } from "../limit/errors.ts";
import type { Checked, PolicyProblem } from "./document.ts";
import { repeated } from "./repeated.ts";

/**
 * A document with mistakes, listed in {@link PolicyError.problems}. It is an `InputError` by its code; the document takes
 * no effect.
 */
export class PolicyError extends InputError {
  /** The mistakes, in the order of the rules: the first 1000, then one that states how many there are. */
  readonly problems: readonly PolicyProblem[];

  constructor(problems: readonly PolicyProblem[], document: unknown) {
    super("document", "a policy document without mistakes", document);
    this.problems = problems;
    const [first] = problems;
    const count = problems.length === 1 ? "a mistake" : numberOf(problems);
    const lines = problems.map(({ message }) => `\n  ${message}`);
    this.message = first === undefined ? this.message : `the policy document has ${count}:${lines.join("")}`;
  }
}

/** How many mistakes are listed; the last of more than 1000 has their number. */
export const numberOf = ({ length }: readonly PolicyProblem[]): string =>
  `${length > 1000 ? "more than 1000" : length} mistakes`;

let loaded = false;

/** The document of a JSON text and its repeated fields, or the one mistake that the text is not JSON. */
function parse(written: string): { value: unknown; twice: ReturnType<typeof repeated>; problem?: PolicyProblem } {
  // Editors on Windows write a byte order mark, which RFC 8259 lets readers ignore.
  const text = written.replace(/^\uFEFF/, "");
  try {
    return { value: JSON.parse(text), twice: repeated(text) };
  } catch (error) {
    // The engine's message has a part of the text, line breaks and control characters included.
    const got = (error as Error).message.replace(
      /\p{C}/gu,
      (hidden) => `\\u${(hidden.codePointAt(0) as number).toString(16).padStart(4, "0")}`,
    );
    return { value: undefined, twice: [], problem: wrong("JSON", got) };
  }
}

const wrong = (expected: string, got: string): PolicyProblem => ({
  path: "",
  expected,
  got,
  message: `\`document\` must be ${expected}; got ${got}`,
});

/** What is not a document, and would be reported as one without rules: the bytes of a file, or a promise. */
function mistaken(document: unknown): PolicyProblem | undefined {
  const expected = "an object, or the JSON text of one";
  if (ArrayBuffer.isView(document)) return wrong(expected, 'bytes; read the file as text: readFileSync(path, "utf8")');
  return isPromise(document) ? wrong(expected, showObject(document)) : undefined;
}

/** The rules or the mistakes of a document, or of its text. */
export function examine(document: unknown): Checked {
  const { value, twice, problem } =
    typeof document === "string" ? parse(document) : { value: document, twice: [], problem: mistaken(document) };
  if (problem !== undefined) return { rules: [], problems: [problem] };
  if (!loaded) load();
  loaded = true;
  return check(value, twice) as Checked;
}

/**
 * The mistakes of a document, or of its JSON text; empty if it is valid. The first 1000 are listed; beyond that, one
 * further problem has their number. Only a text can have repeated fields: a parsed object has lost them.
 *
 * ```ts
 * for (const { path, message } of checkPolicies(readFileSync("policy.json", "utf8"))) console.error(path, message);
 * ```
 */
export function checkPolicies(document: string | object): readonly PolicyProblem[] {
  return examine(document).problems;
}
