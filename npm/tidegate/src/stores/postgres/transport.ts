/** Sends statements, bounded in time, and counts those without a reply. */
import { readable } from "../../limit/errors.ts";
import { afterWaiting, unreferenced } from "../../limit/monotonic.ts";
import type { Send, Sent, Statement } from "./client.ts";

/** For each statement that may be out: this many may be without a reply before no more are sent. */
const LOST = 4;
/** ms between statements that are sent all the same, to find out whether the server is back. */
const PROBE_AFTER = 1000;

/** ms before a deadline at which the store acts on it: at the deadline itself the limiter has answered the caller. */
const BEFORE_DEADLINE = 2;
const MOST_BEFORE_DEADLINE = 20;

/** The statement was not sent: no connection was free for it in time. */
export class NotSent extends Error {}

const notSent = (): NotSent => new NotSent("it was not sent: no connection was free before the deadline");

/** Whether it will not be sent any more. A client that throws has not withdrawn it. */
function isWithdrawn(sent: Sent): boolean {
  try {
    return sent.withdraw();
  } catch {
    return false;
  }
}

/**
 * Sends one statement before `last` (`performance.now()`, ms, which may move), or rejects. What is given up after it was sent is
 * not sent again: the server may still carry it out.
 */
export type SendInTime = (make: () => Statement, last: () => number) => Promise<unknown>;

/** `timeout`: ms after which a statement is given up; `statements`: how many are out at one time. */
export function senderOf(send: Send, timeout: number, statements: number): SendInTime {
  /** Statements without a reply. */
  let unanswered = { count: 0 };
  let probeAt = 0;
  return async (make, last) => {
    const begun = performance.now();
    const out = unanswered;
    const isProbe = out.count >= statements * LOST;
    if (isProbe) {
      if (begun < probeAt) throw new Error(`${out.count} statements are still unanswered`);
      probeAt = begun + PROBE_AFTER;
    }
    const makeInTime = (): Statement => {
      if (performance.now() >= last()) throw notSent();
      return make();
    };
    const sent = send(makeInTime, timeout);
    out.count++;
    const settled = (): void => {
      out.count--;
      // The server is back, with an error too. A client may never settle what it sent to the one that was gone.
      if (isProbe) unanswered = { count: 0 };
    };
    sent.reply.then(settled, settled);
    return replyInTime(sent, timeout, last() - begun);
  };
}

/** The reply. Rejects at the timeout, and shortly before the deadline, in `rest` ms, if it was not sent by then. */
function replyInTime(sent: Sent, timeout: number, rest: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let cancel = (): void => {};
    const atTimeout = (): void => reject(isWithdrawn(sent) ? notSent() : new Error(`no answer within ${timeout} ms`));
    // More than the event loop is usually behind.
    const early = Math.max(BEFORE_DEADLINE, Math.min(MOST_BEFORE_DEADLINE, rest / 10));
    const beforeEnd = Math.max(0, Math.floor(rest - early));
    if (beforeEnd < timeout) {
      // Also if it fires late: a client may send the statement once the caller has been answered.
      const timer = setTimeout(() => {
        if (isWithdrawn(sent)) reject(notSent());
        else cancel = afterWaiting(timeout - beforeEnd, atTimeout, true);
      }, beforeEnd);
      unreferenced(timer);
      cancel = () => clearTimeout(timer);
    } else {
      cancel = afterWaiting(timeout, atTimeout, true);
    }
    Promise.resolve(sent.reply)
      .finally(() => cancel())
      .then(resolve, (error) => reject(readable(error)));
  });
}
