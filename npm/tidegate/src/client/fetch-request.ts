/** What `createFetch` reads of a request. */
import { tagOf } from "../limit/realms.ts";
import type { Init, Input } from "./fetch-options.ts";

/** A request's properties, read without making a `Request`. */
export interface Facts {
  readonly url: URL;
  readonly method: string;
  readonly signal: AbortSignal | undefined;
  /** Whether the same body can be sent again. */
  readonly replayable: boolean;
  readonly headers: () => Headers;
  /** The values of {@link SETTINGS}. */
  readonly settings: () => readonly unknown[];
}

/** What else the answer to a GET depends on. */
const SETTINGS = [
  "cache",
  "credentials",
  "integrity",
  "keepalive",
  "mode",
  "redirect",
  "referrer",
  "referrerPolicy",
] as const;
const KNOWN: readonly string[] = [...SETTINGS, "body", "headers", "method", "signal"];

/** Whether a request has no setting of a host's own, such as a `dispatcher`, which may be anything. */
export const hasOnlyKnown = (init: Init | undefined): boolean =>
  Object.keys(init ?? {}).every((field) => KNOWN.includes(field));

const isRequest = (input: Input): input is Request =>
  typeof input === "object" && input !== null && "url" in input && typeof input.clone === "function";

const REPLAYABLE = ["ArrayBuffer", "Blob", "File", "FormData", "URLSearchParams"];

/** Whether the host has this class, and the value is of it. */
function isOf(name: string, value: unknown): boolean {
  const found = (globalThis as Record<string, unknown>)[name];
  return typeof found === "function" && value instanceof found;
}

/** A stream can be read once; any other body is read anew each time. A form of the package form-data is a stream. */
function isReplayable(body: unknown): boolean {
  if (body === undefined || body === null || typeof body === "string") return true;
  if (typeof (body as { pipe?: unknown }).pipe === "function") return false;
  // By name: jsdom and other realms have their own classes. By class: those of React Native and happy-dom have no name.
  return ArrayBuffer.isView(body) || REPLAYABLE.some((name) => tagOf(body) === `[object ${name}]` || isOf(name, body));
}

export function factsOf(input: Input, init: Init | undefined): Facts {
  const request = isRequest(input) ? input : undefined;
  const { document, location } = globalThis as { document?: { baseURI?: string }; location?: { href?: string } };
  return {
    // A document with <base>, or a frame without its own URL, has another base than its location.
    url: new URL(request?.url ?? String(input), document?.baseURI ?? location?.href),
    method: (init?.method ?? request?.method ?? "GET").toUpperCase(),
    // `null` is none, instead of the request's.
    signal: (init?.signal === undefined ? request?.signal : init.signal) ?? undefined,
    replayable: isReplayable(init?.body),
    headers: () => new Headers(init?.headers ?? request?.headers),
    settings: () => SETTINGS.map((field) => init?.[field] ?? request?.[field]),
  };
}

/** Methods that may be repeated: RFC 9110, 9.2.2. */
const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);

export const isIdempotent = ({ method, headers }: Facts): boolean =>
  IDEMPOTENT.has(method) || headers().has("Idempotency-Key");

/** Requests with one key get one response. */
export const requestKeyOf = ({ url, headers, settings }: Facts): string =>
  JSON.stringify([url.href, [...headers()].sort(), settings()]);

/** A `Request` with a body can be sent once, so all attempts but the last send copies. */
export const copyOf = (input: Input): Input => (isRequest(input) && input.body !== null ? input.clone() : input);
