/** Sends statements, bounded in time, and counts those that were given up and have not been answered. */
import { type Ask, type Sent, type Statement, statement } from "./client.ts";
import { beforeDeadline } from "./pending.ts";
import type { Turn } from "./plain.ts";

/** For each place: so many statements may be unanswered before no more are sent. */
const LOST = 4;
/** ms between those that are sent all the same. */
const PROBE_AFTER = 1000;

/** How long a statement may take. */
export interface Bounds {
  /** ms that it waits for a lock. */
  readonly lock: number;
  /** `performance.now()`, ms, after which the server undoes it. */
  readonly undo: number;
  /** `performance.now()`, ms, after which it is not sent any more: every caller has been answered. */
  readonly last: number;
}

/** The statement was not sent: no connection was free for it in time. */
export class NotSent extends Error {}

const texts = new Map<string, string>();

function boundedText(schema: string, call: string, values: number): string {
  let text = texts.get(call);
  if (text === undefined) {
    // CASE fixes the order. The setting ends with the transaction, which is this statement.
    const once = `CASE WHEN set_config('lock_timeout', $${values + 1}::text, true) <> '' THEN ${call} END`;
    text = `SELECT ${schema}.in_time(${once}, $${values + 2}::text::float8) AS answer`;
    texts.set(call, text);
  }
  return text;
}

/** The statement of a call in SQL; with bounds, the server gives up waiting for locks, and undoes it when it is late. */
export function statementOf(
  schema: string,
  { call, values }: Pick<Turn, "call" | "values">,
  bounds?: Bounds,
): Statement {
  if (bounds === undefined) return statement(`SELECT ${call} AS answer`, values);
  const rest = Math.max(1, bounds.undo - performance.now());
  const text = boundedText(schema, call, values.length);
  return statement(text, [...values, String(Math.max(1, Math.round(bounds.lock))), String(rest)]);
}

export class Sender {
  readonly #ask: Ask;
  readonly #timeout: number;
  readonly #most: number;
  /** Statements that were given up and are still unanswered. */
  #lost = 0;
  #probeAt = 0;

  /** `timeout`: ms after which a statement is given up; `statements`: how many are out at one time. */
  constructor(ask: Ask, timeout: number, statements: number) {
    this.#ask = ask;
    this.#timeout = timeout;
    this.#most = statements * LOST;
  }

  /** One statement. What is given up after it was sent is not sent again: it may still be carried out. */
  send(make: () => Statement, last: number): Promise<unknown> {
    const timeout = this.#timeout;
    return new Promise((resolve, reject) => {
      const begun = performance.now();
      if (this.#lost >= this.#most) {
        if (begun < this.#probeAt) {
          reject(new Error(`${this.#lost} statements are still unanswered`));
          return;
        }
        // A client may never settle what it sent to a server that is gone: one statement a second finds out.
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
      const give = (error: Error): void => {
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
      const wait = (ms: number, then: () => void): void => {
        timer = setTimeout(then, ms);
        (timer as { unref?: () => void }).unref?.();
      };
      const giveUp = (): void => give(withdrawn() ? notSent() : new Error(`no answer within ${timeout} ms`));
      const beforeEnd = Math.max(0, Math.floor(last - begun - beforeDeadline(last - begun)));
      if (beforeEnd < timeout) {
        wait(beforeEnd, () => {
          if (withdrawn()) give(notSent());
          else wait(timeout - beforeEnd, giveUp);
        });
      } else {
        wait(timeout, giveUp);
      }
      try {
        sent = this.#ask(() => {
          if (performance.now() >= last) throw notSent();
          return make();
        }, timeout);
        sent.answer.then(
          (answer) => {
            settled();
            resolve(answer);
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
