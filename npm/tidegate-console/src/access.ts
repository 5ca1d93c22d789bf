/** Who may use the console, and from where. */

/** Decides whether a request may use the console: only `true` lets it in. A response is sent instead of the page. */
export type Authorize = (request: Request) => boolean | Response | Promise<boolean | Response>;

/** The refusal of a request, or `undefined` if it is authorized. */
export async function refusal(request: Request, authorize: Authorize): Promise<Response | undefined> {
  try {
    const answer = await authorize(request);
    if (answer === true) return undefined;
    if (answer instanceof Response) return answer;
  } catch (error) {
    // The client gets no details: the error may contain what only the server should know.
    console.error("tidegate-console: authorize failed", error);
    return text(500, "The console could not decide whether you may use it. The server's log has the reason.");
  }
  return text(403, "You may not use this console.");
}

/**
 * Whether a page of this origin made the request; `undefined` if the request does not say. Browsers send `Sec-Fetch-Site`
 * to https and localhost, and `Origin` with every POST. A proxy that ends TLS changes the scheme, so hosts are compared.
 */
export function isSameOrigin({ headers, url }: Request): boolean | undefined {
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin";
  const origin = headers.get("origin");
  if (origin === null) return undefined;
  const host = headers.get("host") ?? new URL(url).host;
  return URL.canParse(origin) && new URL(origin).host === host;
}

/** Headers of every response: nothing is cached, framed, sniffed or read by other origins. */
const HEADERS = {
  "cache-control": "no-store, no-transform",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

export const respond = (status: number, type: string, body: BodyInit | null, headers: HeadersInit = {}): Response =>
  new Response(body, { status, headers: { ...HEADERS, "content-type": type, ...headers } });

export const text = (status: number, body: string, headers: Record<string, string> = {}): Response =>
  respond(status, "text/plain; charset=utf-8", `${body}\n`, headers);

export const json = (status: number, body: object): Response =>
  respond(status, "application/json", JSON.stringify(body));
