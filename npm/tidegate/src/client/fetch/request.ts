/** What `fetch` takes. */
export type Input = Parameters<typeof globalThis.fetch>[0];
export type Init = NonNullable<Parameters<typeof globalThis.fetch>[1]>;

/** What is known of a request without making one. */
export interface Facts {
  readonly url: URL;
  readonly method: string;
  readonly signal: AbortSignal | undefined;
  /** Whether the same body can be sent again. */
  readonly replayable: boolean;
  readonly headers: () => Headers;
}

/** Methods that may be repeated: RFC 9110, 9.2.2. */
const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);

const isRequest = (input: Input): input is Request =>
  typeof input === "object" && "url" in input && typeof input.clone === "function";

/** A stream can be read once; whatever else is sent is read anew each time. */
function isReplayable(body: unknown): boolean {
  if (body === undefined || body === null || typeof body === "string") return true;
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return true;
  return [globalThis.Blob, globalThis.FormData, globalThis.URLSearchParams].some((kind) => body instanceof kind);
}

export function factsOf(input: Input, init: Init | undefined): Facts {
  const request = isRequest(input) ? input : undefined;
  const base = (globalThis as { location?: { href?: string } }).location?.href;
  return {
    url: new URL(request?.url ?? String(input), base),
    method: (init?.method ?? request?.method ?? "GET").toUpperCase(),
    signal: init?.signal ?? request?.signal ?? undefined,
    replayable: isReplayable(init?.body),
    headers: () => new Headers(init?.headers ?? request?.headers),
  };
}

/** Whether sending it twice does what sending it once does, as far as it says. */
export const isIdempotent = ({ method, headers }: Facts): boolean =>
  IDEMPOTENT.has(method) || headers().has("Idempotency-Key");

/** The input of one more attempt: a `Request` with a body is read by the first that sends it, so all send copies. */
export const again = (input: Input): Input => (isRequest(input) && input.body !== null ? input.clone() : input);
