/** A `fetch` that waits for tokens, and for the limits that servers report. */
import { type Check, check, checkTable, FLAG, FUNCTION, msOf, SIGNAL, STRING } from "../limit/checks.ts";
import { TOKENS } from "../limit/tokens.ts";
import { jitter as spread, MAX_JITTER_MS } from "../limit/jitter.ts";
import { notify } from "../limit/notify.ts";
import { systemClock } from "./clock.ts";
import { FETCH_OPTIONS, type FetchOptions, type Init, type Input } from "./fetch-options.ts";
import { copyOf, type Facts, factsOf, hasOnlyKnown, isIdempotent, requestKeyOf } from "./fetch-request.ts";
import { DEFAULT_PRIORITY, DEFAULT_QUEUED, semaphoreOf } from "./options.ts";
import { Queues } from "./queues.ts";
import { readRateLimit, type ServerLimits } from "./rate-limit-fields.ts";
import { ServerPace } from "./server-pace.ts";
import { sourcesOf } from "./source.ts";

/** A `fetch` that waits, with the state of its queues. */
export interface LimitedFetch {
  (input: Input, init?: Init): Promise<Response>;
  /** Requests that wait to be sent. */
  readonly queued: number;
  /** Requests in flight. */
  readonly running: number;
  /** Resolves once no request waits or is in flight, and the tokens of those that left are returned. */
  idle(): Promise<void>;
  /** Refuses further requests; resolves as `idle` does. */
  drain(): Promise<void>;
}

/** A retry has waited already: it precedes later requests. */
const RETRY_PRIORITY = 9;
/** ms of the first wait if the server sets none; each further one is twice as long. */
const FIRST_WAIT = 1000;
/** Jest's jsdom has no `fetch`. */
const FETCH: Check = { ...FUNCTION, expects: "given if the host has none but this one" };

/**
 * A `fetch` that waits for its own tokens, reads the limits that servers report, and slows down before they deny it.
 *
 * ```ts
 * const fetch = createFetch({ limit: { kind: "token bucket", rate: 5000, period: HOUR, capacity: 100 } });
 * const response = await fetch("https://api.example.com/things");
 * ```
 *
 * Reads all forms of {@link readRateLimit}. If little is left of a limit (`slowBelow`), requests are spaced until its
 * reset; if nothing is left, they wait for the reset. 429 and 503, and GitHub's 403, are retried up to `retries` times
 * if the request is idempotent and its body can be sent again, and all requests of the key wait meanwhile: for
 * `Retry-After` plus `jitter`, or with exponential backoff if the server sets none, or one of 0. Then the oldest go first, at
 * once no more than were in flight at the denial, and one more for each round of grants (for two, if retries are denied and few
 * are in flight), until the queue is idle. A denial that would wait longer than `maxWait` or `deadline` is returned as the
 * response, and the other requests of the key wait. A denial by an unrelated host, to which a redirect led, is returned too: what
 * that host reports is not read.
 *
 * Aborting a queued request returns its tokens. Rejects with a `QueueError` if the queue is full, or own tokens or the
 * server's limits come after the deadline; and with the errors of `fetch`, which are not retried. A `Request` with a body
 * is copied, so its body stays in memory until the response. On Cloudflare Workers make it in the handler, as with
 * `throttle`. Throws an `InputError` immediately if an option is wrong.
 */
export function createFetch<const N extends string = string>(options: FetchOptions<N> = {}): LimitedFetch {
  checkTable("createFetch", options, FETCH_OPTIONS);
  const { limit, key: keyOf = "origin", count: countOf = 1, retries: maxRetries = 3 } = options;
  const maxWait = msOf(options.maxWait ?? 60_000);
  const deadline = msOf(options.deadline ?? Infinity);
  const { jitter = 0.5, slowBelow = 0.2, share = false, maxQueued = DEFAULT_QUEUED } = options;
  const { idempotent, retry, onRetry, fetch: ownFetch, clock: ownClock, concurrency } = options;
  const clock = ownClock ?? systemClock();
  const semaphore = semaphoreOf(concurrency);
  const sources = limit === undefined ? undefined : sourcesOf(limit, () => clock.now());
  const { key: ownKey } = (limit ?? {}) as { key?: string | undefined };
  /** Of the servers that delay requests, by key: as long as they do, although an idle queue may be dropped. */
  const paces = new Map<string | undefined, ServerPace>();
  const paceOf = (key: string | undefined): ServerPace => {
    for (const [first, pace] of paces) {
      paces.delete(first);
      if (pace.holds(clock.now())) paces.set(first, pace);
      break;
    }
    return paces.get(key) ?? new ServerPace(slowBelow, semaphore);
  };
  const queues = new Queues((key) => {
    const pace = paceOf(key);
    // With a key of its own, a limit of a limiter is one for all origins.
    return { clock, maxQueued, semaphore: pace, pace, source: sources?.(ownKey === undefined ? key : undefined) };
  });
  let calls = 0;
  // Spreads the retries of different clients; React Native has no `crypto`.
  const identity = String(Math.random());

  // The global is looked up for each request, so that a replacement takes effect. If it is this one, a request would wait for itself.
  const hostFetch = (): NonNullable<FetchOptions["fetch"]> => {
    const { fetch } = globalThis;
    return check("fetch", ownFetch ?? (fetch === limited ? undefined : fetch), FETCH) as typeof fetch;
  };

  /** Whose request it is, its tokens, and how often it may be sent again. */
  function settingsOf(init: Init | undefined, facts: Facts): { key: string; count: number; retries: number } {
    const { url, signal, replayable } = facts;
    if (signal !== undefined) check("signal", signal, SIGNAL);
    const key = keyOf === "origin" ? url.origin : check("key", keyOf(url, init), STRING);
    const count = typeof countOf === "function" ? check("count", countOf(url, init), TOKENS) : countOf;
    const mayRepeat = idempotent === undefined ? isIdempotent(facts) : check("idempotent", idempotent(url, init), FLAG);
    return { key, count, retries: replayable && mayRepeat ? maxRetries : 0 };
  }

  /**
   * Applies the limits that a response reports. Returns when to retry, epoch ms, if it is a denial that may be waited for.
   * `number` counts the requests of the key, and `attempt` the earlier ones of this call, which is not sent again after `notAfter`.
   */
  function retryAtOf(
    response: Response,
    pace: ServerPace,
    request: { number: number; attempt: number; url: URL; key: string; notAfter: number },
  ): number | undefined {
    check("fetch", response, RESPONSE);
    // A redirect may lead anywhere: what a stranger reports must not hold back the requests of the key.
    if (response.redirected && !areRelated(new URL(response.url).hostname, request.url.hostname)) return undefined;
    const now = clock.now();
    // Dates are read by the host's time, which this clock may be ahead of.
    const reported = readRateLimit(response.headers, ownClock?.now());
    pace.learn(reported, request.number, now);
    if (pace.holds(now)) paces.set(request.key, pace);
    let chosen: boolean | undefined;
    try {
      chosen = retry?.(response);
      if (chosen !== undefined) check("retry", chosen, FLAG);
    } catch (error) {
      void discard(response);
      throw error;
    }
    if (!(chosen ?? isDenied(response, reported))) {
      pace.granted();
      return undefined;
    }
    const { attempt, key, notAfter } = request;
    const longest = Math.min(maxWait, notAfter - now);
    const wait = { attempt, jitter, longest, key: `${identity} ${key} ${attempt}` };
    pace.denied(retryTime(reported, now, wait), attempt > 0);
    paces.set(key, pace);
    // Another limit that it reports may be empty for longer than `Retry-After`.
    const at = pace.at(now);
    return at - now > maxWait ? undefined : at;
  }

  async function send(input: Input, init: Init | undefined, facts: Facts): Promise<Response> {
    hostFetch(); // throws before a token is taken
    const { url, signal } = facts;
    const { key, count, retries } = settingsOf(init, facts);
    const queue = queues.get(key);
    const { pace } = queue.parts;
    if (queue.isIdle) pace.idle();
    const notAfter = clock.now() + deadline;
    const call = ++calls;
    for (let attempt = 0; ; attempt++) {
      // Within the queue's call, so that the server's limits apply before the next request is sent.
      const exchange = async (): Promise<{ response: Response; at: number | undefined }> => {
        const number = pace.send();
        const response = await hostFetch()(attempt < retries ? copyOf(input) : input, init);
        return { response, at: retryAtOf(response, pace, { number, attempt, url, key, notAfter }) };
      };
      const [priority, retryOf] = attempt > 0 ? [RETRY_PRIORITY, call] : [DEFAULT_PRIORITY];
      // No `await` until the next attempt is queued: meanwhile the queue would be idle.
      const { response, at } = await queue.run({ count, priority, signal, notAfter, retryOf }, exchange);
      if (at === undefined || attempt >= retries || at > notAfter) return response;
      void discard(response);
      notify(() => onRetry?.({ url, status: response.status, attempts: attempt + 1, wait: at - clock.now() }));
    }
  }

  /** Requests in flight that callers share, by what their response depends on. */
  const flights = new Map<string, { readonly response: Promise<Response>; callers: number }>();

  async function sharing(input: Input, init: Init | undefined, facts: Facts): Promise<Response> {
    const key = requestKeyOf(facts);
    let flight = flights.get(key);
    if (flight === undefined) {
      flight = { response: send(input, init, facts).finally(() => flights.delete(key)), callers: 0 };
      flights.set(key, flight);
    }
    flight.callers++;
    const response = await flight.response;
    // A body for each caller, and no further one: its chunks would be kept in memory, and canceling the others would not end it.
    return --flight.callers === 0 ? response : response.clone();
  }

  const limited: LimitedFetch = queues.shownBy(async (input: Input, init?: Init): Promise<Response> => {
    const facts = factsOf(input, init);
    const shares = share && facts.method === "GET" && facts.signal === undefined && hasOnlyKnown(init);
    return shares ? sharing(input, init, facts) : send(input, init, facts);
  });
  return limited;
}

/** Whether they are one host, or one of them is the other's subdomain, such as `www.example.com`. */
const areRelated = (host: string, other: string): boolean =>
  `.${host}`.endsWith(`.${other}`) || `.${other}`.endsWith(`.${host}`);

/** By shape: a `fetch` of another package has its own class, and one of a test may return nothing. */
const RESPONSE: Check = {
  expects: "a function that returns a Response",
  accepts: (response) => typeof (response as Response | null | undefined)?.headers?.get === "function",
};

/**
 * Ends a body that is not read, which would hold its connection. One that is broken or locked, or never ends, must not cost
 * the retry. A body of node-fetch is a stream of Node.js, which has no `cancel`.
 */
async function discard(response: Response): Promise<void> {
  const body = response.body as { cancel?(): unknown; destroy?(): unknown } | null | undefined;
  try {
    await (body?.cancel === undefined ? body?.destroy?.() : body.cancel());
  } catch {
    // It holds no connection.
  }
}

/**
 * Whether the server denied the request for its rate, or is overloaded: 429, 503; and 403 with nothing left or a wait
 * (GitHub). `…-Should-Retry: false` (Stripe, OpenAI) rules a retry out.
 */
function isDenied({ status, headers }: Response, { limits, retryAfter }: ServerLimits): boolean {
  if ((headers.get("Stripe-Should-Retry") ?? headers.get("X-Should-Retry")) === "false") return false;
  if (status === 429 || status === 503) return true;
  return status === 403 && (retryAfter !== undefined || limits.some(({ remaining }) => remaining === 0));
}

/**
 * Epoch ms of the next attempt: never before the server's wait (`Retry-After`, else the resets of its empty limits), and
 * up to `jitter` of the wait later, within the `longest` wait; if it sets none, or one of 0, exponential backoff, of which
 * at least half is waited.
 */
function retryTime(
  { limits, retryAfter }: ServerLimits,
  now: number,
  { attempt, jitter, longest, key }: { attempt: number; jitter: number; longest: number; key: string },
): number {
  const resets = limits.flatMap(({ remaining, resetAfter }) => (remaining === 0 ? (resetAfter ?? []) : []));
  // Not by one call of `Math.max`: a server may report more limits than a call takes.
  const required = retryAfter ?? (resets.length === 0 ? undefined : resets.reduce((a, b) => Math.max(a, b)));
  // In a date, a wait of less than a second is 0: retrying then would use all attempts within an instant.
  const wait = required || (FIRST_WAIT * 2 ** attempt) / (1 + jitter);
  // Jitter must not make a wait that is allowed too long.
  const most = Math.min(MAX_JITTER_MS, Math.max(0, longest - wait));
  return spread({ retryAt: now + wait, retryAfter: wait }, { key, fraction: jitter, most }) as number;
}
