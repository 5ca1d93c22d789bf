/**
 * One page that shows who is limited and changes it live, as a fetch handler for any app.
 *
 * ```ts
 * const { limits, fetch } = createConsole(
 *   defineLimits({ api: { kind: "token bucket", rate: 10, period: "1s" } }),
 *   { authorize: (request) => isAdmin(request) },
 * );
 * ```
 *
 * @module
 */
import { InputError, type Limiter, type Store } from "tidegate";
import { observe } from "tidegate/observe";
import { type Authorize, isSameOrigin, refusal, respond, text } from "./access.ts";
import { Counts } from "./counts.ts";
import { type ConsoleKeys, ownKeys } from "./keys.ts";
import { type ConsoleAction, operate, type OnAction, type ShadowSwitches } from "./operations.ts";
import { Streams } from "./stream.ts";

export type { Authorize, ConsoleAction, ConsoleKeys, OnAction, ShadowSwitches };

/** Settings of {@link createConsole}. */
export interface ConsoleOptions {
  /**
   * Whether a request may use the console: `true`, or a promise of it. A `Response`, such as one that requires a sign-in,
   * is sent as it is. Anything else is answered with 403, and an error with 500 without its message. Called for the page, for each operation, and at least every 30 s while the page is open.
   * It must not read the request's body.
   */
  authorize: Authorize;
  /**
   * Called before each reset, give, charge, block and change of shadow mode, to record who did what. An error prevents the
   * operation.
   */
  onAction?: OnAction | undefined;
  /** The limits, if the limiter defines none: `keysOfPolicies(policies)` of `tidegate/policies`. */
  keys?: ConsoleKeys | undefined;
  /**
   * What puts limits into shadow mode, in this process: `policies`, of `definePolicies`. Without it the page has no switch
   * for it.
   */
  shadow?: ShadowSwitches | undefined;
  /** The clock of the counts, epoch ms; default `Date.now`. Give one in tests. */
  now?: (() => number) | undefined;
}

/** Made by {@link createConsole}. */
export interface Console<N extends string, S extends Store> {
  /** The limiter that the app uses: the same limits, on the same store, with counts. */
  readonly limits: Limiter<N, S>;
  /** Responds with the page and its data. Mount it at any path, for GET and POST. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Ends the streams of open pages, and refuses others, at shutdown; the pages connect again until a server answers. */
  readonly close: () => void;
}

const isFunction = (value: unknown): boolean => typeof value === "function";

/** Whether it has `names`, and these methods. */
const named =
  (...methods: readonly string[]) =>
  (value: unknown): boolean => {
    const found = Object(value) as Record<string, unknown>;
    return Array.isArray(found["names"]) && methods.every((method) => isFunction(found[method]));
  };

const OPTIONS: Readonly<Record<keyof ConsoleOptions, readonly [rule: string, accepts: (value: unknown) => boolean]>> = {
  authorize: ["a function (request) => boolean that decides who may use the console", isFunction],
  onAction: ["a function of an action", isFunction],
  now: ["a function that returns ms", isFunction],
  keys: ["limits and keys, such as keysOfPolicies(policies)", named("target", "text")],
  shadow: ["what definePolicies returns", named("isShadow", "setShadow")],
};

/** An unknown name, cut (of a URL only the scheme: it may have a password), and without characters that a terminal obeys. */
const shortened = (name: string): string => name.replace(/\p{C}/gu, "?").replace(/^([^/ ]+:\/\/|.{80}).+/su, "$1…");

function checkOptions(options: unknown): asserts options is ConsoleOptions {
  if (typeof options !== "object" || options === null) {
    throw new InputError("options", "an object with authorize", options);
  }
  for (const [field, value] of Object.entries(options)) {
    if (!Object.hasOwn(OPTIONS, field)) {
      throw new InputError(shortened(field), `absent: createConsole has ${Object.keys(OPTIONS).join(", ")}`, value);
    }
  }
  for (const [field, [rule, accepts]] of Object.entries(OPTIONS)) {
    const value = (options as Record<string, unknown>)[field];
    if (!accepts(value) && (value !== undefined || field === "authorize")) throw new InputError(field, rule, value);
  }
}

/**
 * A limiter that counts its decisions, and a fetch handler that shows them on a page.
 *
 * The counts are of this process since it started, for at most ten minutes back; they take 12 kB per limit and at most
 * a few MB for keys. Values and operations are the store's, so they are of all processes.
 *
 * ```ts
 * const { limits, fetch } = createConsole(defineLimits({ … }, { store }), { authorize: (request) => isAdmin(request) });
 * app.all("/limits", (c) => fetch(c.req.raw));
 * ```
 *
 * Throws an `InputError` if `limiter` is not a limiter, or `authorize` is not a function: there is no console without one.
 */
export function createConsole<N extends string, S extends Store>(
  limiter: Limiter<N, S>,
  options: ConsoleOptions,
): Console<N, S> {
  checkOptions(options);
  const { authorize, onAction = () => {}, shadow, now = Date.now } = options;
  const keys = options.keys ?? ownKeys(limiter);
  const counts = new Counts(keys, now);
  const limits = observe(limiter, counts.add);
  const streams = new Streams(counts, shadow);

  /** What the console's own calls decide is not counted. */
  const operated = { limiter, keys, shadow, onAction };

  async function fetch(request: Request): Promise<Response> {
    const { method, headers } = request;
    if (method !== "GET" && method !== "HEAD" && method !== "POST") {
      return text(405, "The console takes GET and POST.", { allow: "GET, HEAD, POST" });
    }
    const refused = await refusal(request, authorize);
    if (refused !== undefined) return refused;
    const sameOrigin = isSameOrigin(request);
    if (method === "POST") {
      if (sameOrigin !== true) return text(403, "Only the console's own page may do this.");
      return operate(request, operated);
    }
    if (!new URL(request.url).searchParams.has("stream")) return page(method);
    if (sameOrigin === false) return text(403, "Only the console's own page may read this.");
    if (method === "HEAD") return events(null);
    if (streams.closed) return text(503, "The server shuts down.", { connection: "close" });
    const stream = streams.open(headers.get("last-event-id"));
    return stream === undefined ? text(503, "Too many pages are open.", { "retry-after": "5" }) : events(stream);
  }

  /** The page is loaded with the first request for it, and has the names of all limits, those without decisions too. */
  async function page(method: string): Promise<Response> {
    const { PAGE, POLICY } = await import("./generated/page.ts");
    const body = method === "HEAD" ? null : PAGE;
    return respond(200, "text/html; charset=utf-8", body, { "content-security-policy": POLICY });
  }

  // Proxies that collect responses would delay events.
  const events = (stream: ReadableStream | null): Response =>
    respond(200, "text/event-stream", stream, { "x-accel-buffering": "no" });

  return { limits, fetch, close: () => streams.close() };
}
