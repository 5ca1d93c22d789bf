import type { Admission, Gate } from "./gate.ts";
import type { Denial } from "./options.ts";

/**
 * Settles once: at the handler's end, or when the client leaves before, also where it left before the decision. Call it
 * before the decision: @hono/node-server 1 aborts only a signal that has been read. `keep` lets hosts wait that otherwise
 * stop work after the response (Workers).
 */
export function settlement<R>(
  gate: Gate<R>,
  request: { readonly signal: AbortSignal },
  keep: (work: Promise<void>) => void,
): (admission: Admission<R>) => (status: number, error?: unknown) => void {
  if (gate.options.settle === undefined) return () => () => {};
  const { signal } = request;
  return (admission) => {
    let done = false;
    const settle = (status: number, aborted: boolean, error?: unknown): void => {
      if (done) return;
      done = true;
      signal.removeEventListener("abort", left);
      keep(admission.settle({ status, aborted, error }));
    };
    const left = (): void => settle(499, true);
    if (signal.aborted) left();
    else signal.addEventListener("abort", left);
    return (status, error) => settle(status, signal.aborted, error);
  };
}

/** The response to a denied request. */
export const refusal = ({ body, status, contentType }: Denial): Response =>
  new Response(body, { status, headers: { "Content-Type": contentType } });

/** The response with the fields; a copy where its headers are immutable, as those of a response from `fetch`. */
export function withFields<R>(admission: Admission<R>, response: Response): Response {
  try {
    admission.setFields(response.headers);
    return response;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const { body, status, statusText, headers } = response;
    // Not from the response itself: @hono/node-server's Response would take over its headers.
    const copy = new Response(body, { status, statusText, headers: new Headers(headers) });
    admission.setFields(copy.headers);
    return copy;
  }
}

/** The status of what a handler threw: Next.js throws redirects and not-found pages, with a digest. */
export function statusOfThrown(error: unknown): number {
  const digest: unknown = (error as { digest?: unknown } | null | undefined)?.digest;
  if (typeof digest !== "string") return 500;
  if (digest.startsWith("NEXT_REDIRECT")) return 303;
  return Number(/^NEXT_HTTP_ERROR_FALLBACK;(\d{3})/.exec(digest)?.[1] ?? 500);
}
