import { checkKey, checkTokens, DEFAULT_PRIORITY } from "../options.ts";
import { Queues } from "../queues.ts";
import { singleFlight } from "../single-flight.ts";
import { sourcesOf } from "../source.ts";
import { submit } from "../submit.ts";
import { readRateLimit } from "../told/read.ts";
import { isDenied, nextAttempt } from "./denial.ts";
import { checkFetchOptions, type FetchOptions, type Settings } from "./options.ts";
import { again, type Facts, factsOf, type Init, type Input, isIdempotent } from "./request.ts";
import { Restraint } from "./restraint.ts";

/** A `fetch` that waits: also what waits and what is on its way, as a throttled function has it. */
export interface LimitedFetch {
  (input: Input, init?: Init): Promise<Response>;
  /** Requests that wait to be sent. */
  readonly queued: number;
  /** Requests on their way. */
  readonly running: number;
  /** Resolves once nothing waits and nothing is on its way. */
  idle(): Promise<void>;
  /** Takes no more requests; resolves once those that are in are answered. */
  drain(): Promise<void>;
}

/** A retry goes before what came later: it has waited. */
const RETRY_PRIORITY = 9;

/**
 * A `fetch` that waits for tokens of its own, reads what servers tell of their limits, and slows down before they deny it.
 *
 * ```ts
 * const fetch = createFetch({ limit: { kind: "token bucket", rate: 5000, period: HOUR, capacity: 100 } });
 * const response = await fetch("https://api.example.com/things");
 * ```
 *
 * Reads all forms that {@link readRateLimit} knows. Where little is left of a limit (`slowBelow`), the rest is spread over
 * the time it must do; where nothing is left, requests wait until there is more. 429 and 503, and GitHub's 403, are
 * retried up to `retries` times where the request is idempotent and its body can be sent again, and all requests of the key
 * wait meanwhile: as long as `Retry-After` says, with `jitter` on top, or longer each time where nothing says how long.
 * What cannot be waited for (`maxWait`, `deadline`) is passed on: a denial is an answer.
 *
 * An abort while it waits gives its tokens back. Rejects with a `QueueError` where the queue is full, or own tokens or told
 * limits would come after the deadline; with whatever `fetch` rejects with, which is not retried. A `Request` with a body is
 * copied, so its body stays in memory until it is answered. Throws an `InputError` at once where an option is wrong.
 */
export function createFetch(options: FetchOptions = {}): LimitedFetch {
  const settings = checkFetchOptions(options);
  const { clock, slowBelow, maxQueued, semaphore } = settings;
  const sources = options.limit === undefined ? undefined : sourcesOf(options.limit, () => clock.now());
  const queues = new Queues((key) => ({
    clock,
    maxQueued,
    semaphore,
    pace: new Restraint(slowBelow),
    source: sources?.(key),
  }));
  const identity = crypto.randomUUID();

  async function send(input: Input, init: Init | undefined, facts: Facts): Promise<Response> {
    const { url, signal } = facts;
    const { key: keyOf, count: counted, deadline } = settings;
    const key = keyOf === "origin" ? url.origin : (checkKey(keyOf(url, init)) ?? "");
    const count = typeof counted === "function" ? checkTokens(counted(url, init)) : counted;
    const queue = queues.get(key);
    const restraint = queue.pace as Restraint;
    const notAfter = deadline === undefined ? undefined : clock.now() + deadline;
    const retries = mayRetry(settings, facts, init) ? settings.retries : 0;
    /** Sends it, and hears what the answer tells before any other is sent; with when to come back, where it was denied. */
    async function exchange(attempt: number): Promise<{ response: Response; at: number | undefined }> {
      const sent = restraint.send();
      let response: Response;
      try {
        response = await settings.fetch(attempt < retries ? again(input) : input, init);
      } finally {
        restraint.landed();
      }
      const now = clock.now();
      const told = readRateLimit(response.headers, now);
      restraint.hear(told, sent, now);
      if (!isDenied(response, told)) return { response, at: undefined };
      const at = nextAttempt(told, attempt, now, { jitter: settings.jitter, key: `${identity} ${key}` });
      if (at - now > settings.maxWait) return { response, at: undefined };
      restraint.hold(at);
      return { response, at };
    }
    for (let attempt = 0; ; attempt++) {
      const priority = attempt === 0 ? DEFAULT_PRIORITY : RETRY_PRIORITY;
      const { response, at } = await submit(queue, { count, priority, signal, notAfter }, () => exchange(attempt));
      if (at === undefined || attempt >= retries || (notAfter !== undefined && at > notAfter)) return response;
      settings.onRetry?.({ url, status: response.status, attempts: attempt + 1, wait: at - clock.now() });
      // Unread, it would hold its connection.
      await response.body?.cancel();
    }
  }

  const sharing = singleFlight(send, { key: (_input, _init, { url, headers }) => identityOf(url, headers()) });
  async function limited(input: Input, init?: Init): Promise<Response> {
    const facts = factsOf(input, init);
    const shares = settings.share && facts.method === "GET" && facts.signal === undefined;
    // Each reads a body of its own.
    return shares ? (await sharing(input, init, facts)).clone() : send(input, init, facts);
  }
  const parts = Object.assign(limited, { idle: () => queues.idle(), drain: () => queues.drain() });
  return Object.defineProperties(parts, {
    queued: { get: () => queues.queued },
    running: { get: () => queues.running },
  }) as unknown as LimitedFetch;
}

function mayRetry(settings: Settings, facts: Facts, init: Init | undefined): boolean {
  if (settings.retries === 0 || !facts.replayable) return false;
  const { idempotent } = settings;
  return idempotent === undefined ? isIdempotent(facts) : idempotent(facts.url, init);
}

const identityOf = (url: URL, headers: Headers): string => JSON.stringify([url.href, [...headers].sort()]);
