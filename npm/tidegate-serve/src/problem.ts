/** Bodies of RFC 9457 for requests that the service refuses. */
import type { Context } from "hono";
import { PROBLEM_JSON } from "tidegate/http";

/** What is wrong with a request. */
interface Mistake {
  /** The path of the field: `limits[0].count`. */
  readonly field: string;
  /** What it must be. */
  readonly rule: string;
  readonly value?: unknown;
  readonly remedy: string;
}

/** A mistake of the caller, answered with 400. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly mistake: Mistake;

  constructor(mistake: Mistake) {
    super(sentence(mistake));
    this.mistake = mistake;
  }
}

const sentence = ({ field, rule, value, remedy }: Mistake): string =>
  `\`${field}\` must be ${rule}; got ${shown(value)}. ${remedy}`;

const TITLES = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  500: "Internal Server Error",
  503: "Service Unavailable",
} as const;

/** The statuses of the service's own problems. */
type ProblemStatus = keyof typeof TITLES;

/** `1e999` is infinite in JavaScript, and JSON has no word for it: it would be reported as `null`. */
const infinite = (_: string, value: unknown): unknown =>
  value === Infinity ? "Infinity" : value === -Infinity ? "-Infinity" : value;

/** A response of RFC 9457. */
export function problem(c: Context, status: ProblemStatus, detail: string, more: object = {}): Response {
  const body = JSON.stringify({ type: "about:blank", title: TITLES[status], status, detail, ...more }, infinite);
  return c.body(body, status, { "Content-Type": PROBLEM_JSON });
}

/** A value in at most 200 characters of JSON. `JSON.parse` reads more levels than `JSON.stringify` writes. */
function shown(value: unknown): string {
  let text: string;
  try {
    text = typeof value === "number" ? String(value) : (JSON.stringify(value, infinite) ?? "nothing");
  } catch {
    return "a value nested too deeply…";
  }
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

export function mistaken(c: Context, { message, mistake }: RequestError): Response {
  const { field, rule, value, remedy } = mistake;
  const got = shown(value);
  return problem(c, 400, message, { field, rule, value: got.endsWith("…") ? got : value, remedy });
}
