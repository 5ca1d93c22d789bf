/** Sends statements, bounded in time, and counts those without a reply. */
import { type Send, type Sent, type Statement, statement } from "./client.ts";
import { beforeDeadline } from "./request.ts";
import type { FunctionCall } from "./statements.ts";

/** For each statement that may be out: so many may be without a reply before no more are sent. */
const LOST = 4;
/** ms between statements that are sent all the same, to find out whether the server is back. */
const PROBE_AFTER = 1000;

/** How long a statement may take. */
export interface Bounds {
  /** ms that it waits for a lock. */
  readonly lock: number;
  /** `performance.now()`, ms, after which the server undoes it. */
  readonly undo: number;
}

/** The statement was not sent: no connection was free for it in time. */
export class NotSent extends Error {}

const texts = new Map<string, string>();

/**
 * The statement of a function. With bounds, the server stops waiting for locks, and undoes the statement when it is late.
 * `committed`: by the procedure, in a transaction of its own at READ COMMITTED.
 */
export function statementOf(
  schema: string,
  { name, types, values }: FunctionCall,
  bounds?: Bounds,
  committed = false,
): Statement {
  const key = `${schema} ${name} ${types.length} ${bounds === undefined} ${committed}`;
  let text = texts.get(key);
  if (text === undefined) {
    const typed = types.map((type, i) => (type === "text" ? `$${i + 1}::text` : `$${i + 1}::text::${type}`)).join(", ");
    const [lock, most] = [`$${types.length + 1}::text`, `$${types.length + 2}::text::float8`];
    const call = `${schema}.${name}(${typed})`;
    // CASE fixes the order. The setting ends with the transaction, which is this statement.
    const limited = `CASE WHEN set_config('lock_timeout', ${lock}, true) <> '' THEN ${call} END`;
    text = committed
      ? `CALL ${schema}.${name}_committed(${typed}, ${lock}, ${most})`
      : bounds === undefined
        ? `SELECT ${call} AS answer`
        : `SELECT ${schema}.in_time(${limited}, ${most}) AS answer`;
    texts.set(key, text);
  }
  if (bounds === undefined) return statement(text, values);
  const rest = Math.max(1, bounds.undo - performance.now());
  return statement(text, [...values, String(Math.max(1, Math.round(bounds.lock))), String(rest)]);
}

export class Transport {
  readonly #send: Send;
  readonly #timeout: number;
  readonly #most: number;
  /** Statements that were given up and have no reply yet. */
  #lost = 0;
  #probeAt = 0;

  /** `timeout`: ms after which a statement is given up; `statements`: how many are out at one time. */
  constructor(send: Send, timeout: number, statements: number) {
    this.#send = send;
    this.#timeout = timeout;
    this.#most = statements * LOST;
  }

  /**
   * Sends one statement before `last` (`performance.now()`, ms), or rejects. What is given up after it was sent is not
   * sent again: the server may still carry it out.
   */
  send(make: () => Statement, last: number): Promise<unknown> {
    const timeout = this.#timeout;
    return new Promise((resolve, reject) => {
      const begun = performance.now();
      if (this.#lost >= this.#most) {
        if (begun < this.#probeAt) {
          reject(new Error(`${this.#lost} statements are still unanswered`));
          return;
        }
        // A client may never settle what it sent to a server that is gone.
        this.#probeAt = begun + PROBE_AFTER;
      }
      let sent: Sent | undefined;
      let lost = false;
      let timer: ReturnType<typeof setTimeout> | undefined;
      const settled = (): void => {
        clearTimeout(timer);
        if (lost) this.#lost--;
        lost = false;
      };
      const giveUp = (error: Error): void => {
        lost = true;
        this.#lost++;
        reject(error);
      };
      const withdrawn = (): boolean => {
        try {
          return sent?.withdraw() === true;
        } catch {
          return false;
        }
      };
      const notSent = (): NotSent => new NotSent("it was not sent: no connection was free before the deadline");
      const after = (ms: number, then: () => void): void => {
        timer = setTimeout(then, ms);
        (timer as { unref?: () => void }).unref?.();
      };
      const atTimeout = (): void => giveUp(withdrawn() ? notSent() : new Error(`no answer within ${timeout} ms`));
      const beforeEnd = Math.max(0, Math.floor(last - begun - beforeDeadline(last - begun)));
      if (beforeEnd < timeout) {
        after(beforeEnd, () => {
          if (withdrawn()) giveUp(notSent());
          else after(timeout - beforeEnd, atTimeout);
        });
      } else {
        after(timeout, atTimeout);
      }
      try {
        sent = this.#send(() => {
          if (performance.now() >= last) throw notSent();
          return make();
        }, timeout);
        sent.reply.then(
          (reply) => {
            settled();
            resolve(reply);
          },
          (error: unknown) => {
            settled();
            reject(error);
          },
        );
      } catch (error) {
        settled();
        reject(error);
      }
    });
  }
}
