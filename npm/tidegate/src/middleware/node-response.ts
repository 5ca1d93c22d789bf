/** What the middleware of frameworks on `node:http` share: Express, Fastify, Koa, Nest and plain servers. */
import type { HeaderTarget } from "../http/fields.ts";
import { isPromise } from "../limit/realms.ts";
import { InputError, show } from "../limit/errors.ts";
import type { Incoming } from "./client-key.ts";
import type { Gate } from "./gate.ts";
import type { Denial, RequestDecision } from "./options.ts";
import { follow, type MaybePromise } from "../limit/maybe-promise.ts";

/** What is read of a response of `node:http`. */
export interface NodeResponse {
  statusCode: number;
  readonly headersSent: boolean;
  readonly writableEnded: boolean;
  getHeader(name: string): number | string | string[] | undefined;
  setHeader(name: string, value: string): unknown;
  end(): unknown;
  end(body: string): unknown;
  once(event: "finish" | "close", listener: () => void): unknown;
  /** HTTP/2. */
  readonly stream?: object;
  /** `null` while the response waits behind another of its connection (pipelining), and in express-ws. */
  readonly socket?: { readonly bytesWritten?: number } | null;
  readonly req?: { readonly socket?: object | null; readonly upgrade?: boolean };
}

/** Where a framework on `node:http` keeps the parts of a request. */
export interface NodeExchange<R> {
  readonly request: R;
  readonly incoming: Incoming;
  /** The object of the request that is the same wherever the gate is mounted. */
  readonly once: object | undefined;
  /** Absent if the transport has none, as a WebSocket message. */
  readonly response: NodeResponse | undefined;
  /** Where fields are set, if not on the response. */
  readonly target?: HeaderTarget;
  /** `refuse` only throws, which the framework handles even if the response has begun. */
  readonly throws?: boolean;
  attach(decision: RequestDecision): void;
  refuse(denial: Denial): MaybePromise<unknown>;
}

/**
 * Decides on a request of `node:http`: resolves to whether it goes on, synchronously if everything is. An error of the
 * user's functions comes out for the framework to handle.
 */
export function limitExchange<R>(gate: Gate<R>, exchange: NodeExchange<R>): MaybePromise<boolean> {
  const { request, response, incoming, once } = exchange;
  // The listener is added before the decision: the client may leave while a store or a key function is awaited.
  const ended = gate.options.settle === undefined || response === undefined ? undefined : ending(response);
  return follow(gate.admit(request, incoming, once), (admission): MaybePromise<boolean> => {
    if (admission === undefined) return true;
    exchange.attach(admission.decision);
    const isSent = response?.headersSent === true;
    const target = exchange.target ?? response;
    if (target !== undefined && !isSent) admission.setFields(target);
    if (!admission.blocked) {
      ended?.((end) => void admission.settle(end));
      return true;
    }
    if (isSent && exchange.throws !== true) {
      endBegun(response, gate, admission.decision);
      return false;
    }
    return follow(admission.denial(), (denial) => follow(exchange.refuse(denial), () => false));
  });
}

/** No status can be sent any more, so the response ends as it is. */
function endBegun<R>(response: NodeResponse, gate: Gate<R>, { policy }: RequestDecision): void {
  // Such as a timeout's, which was sent while the store was awaited.
  if (response.writableEnded) return;
  response.end();
  const order = "mount rateLimit in front of what begins the response";
  const what = `limit ${policy.name} denied a request whose response had already begun, which ends without its handler`;
  void gate.report(new Error(`${what}: ${order}`));
}

interface End {
  readonly status: number;
  readonly aborted: boolean;
}

type OnEnd = (listener: (end: End) => void) => void;

/** By response, what adds to its listeners: with events for each limit, Node.js would warn of a leak. */
const endings = new WeakMap<NodeResponse, OnEnd>();

/**
 * Calls listeners when the response was sent or its client left, even if that was before. It reads events and not
 * `writableFinished`: the responses of tests (`app.inject`) and of AWS Lambda never set it, or never close.
 */
export function ending(response: NodeResponse): OnEnd {
  const known = endings.get(response);
  if (known !== undefined) return known;
  let end: End | undefined;
  const listeners: ((end: End) => void)[] = [];
  let forget: (() => void) | undefined;
  const { socket, req } = response;
  const written = socket?.bytesWritten;
  // The response to a request that became a WebSocket is never finished. Its handshake, which is no response of Node.js's, was
  // written; otherwise a client could leave before the response, and count as one that opened a WebSocket. express-ws makes a
  // response without a socket, after the handshake.
  const isOpened = (): boolean =>
    req?.upgrade === true && response.headersSent !== true && (socket === null || socket?.bytesWritten !== written);
  const ended = (aborted: boolean): void => {
    if (end !== undefined) return;
    end = aborted && isOpened() ? { status: 101, aborted: false } : { status: response.statusCode, aborted };
    forget?.();
    for (const listener of listeners) listener(end);
  };
  // HTTP/2 emits "finish" for a response that its client reset, too. Libraries for AWS Lambda emit it before `writableEnded`.
  response.once("finish", () => ended(response.stream !== undefined && !response.writableEnded));
  response.once("close", () => ended(true));
  // Node.js emits neither for one that still waits behind another when the client leaves.
  if (socket === null) forget = whenClosed(req?.socket, () => ended(true));
  const add: OnEnd = (listener) => {
    if (end === undefined) listeners.push(listener);
    else listener(end);
  };
  endings.set(response, add);
  return add;
}

/** By connection, what to call when it closes: with a listener for each, Node.js would warn of a leak. */
const closing = new WeakMap<object, Set<() => void>>();

/** Calls `closed` when the connection closes, unless the returned function is called before. */
function whenClosed(socket: object | null | undefined, closed: () => void): (() => void) | undefined {
  const { once } = Object(socket) as Partial<NodeResponse>;
  if (typeof once !== "function") return undefined;
  const all = closing.get(socket as object) ?? new Set();
  if (!closing.has(socket as object)) {
    closing.set(socket as object, all);
    once.call(socket, "close", () => {
      for (const each of all) each();
    });
  }
  all.add(closed);
  return () => all.delete(closed);
}

/**
 * What was thrown as an error. `undefined` and `"route"` are none to Express and Fastify: the request would pass without a
 * decision. Koa would never answer it.
 */
export const errorOf = (thrown: unknown): unknown =>
  typeof thrown === "object" && thrown !== null
    ? thrown
    : new Error(`a function in the options of rateLimit threw ${show(thrown)}, which is no Error`, { cause: thrown });

/**
 * Calls `next()` if the request goes on, and returns its result; calls `failed` with an error of the decision, but not
 * with one of `next`.
 */
export function goOn(
  decide: () => MaybePromise<boolean>,
  next: () => unknown,
  failed: (error: unknown) => void,
): unknown {
  if (typeof failed !== "function")
    throw new InputError("next", "a function; where handlers take a Request or an event use tidegate/fetch", failed);
  const fail = (thrown: unknown): void => failed(errorOf(thrown));
  let decided: MaybePromise<boolean>;
  try {
    decided = decide();
  } catch (error) {
    return fail(error);
  }
  if (isPromise(decided)) return decided.then((allowed) => (allowed ? next() : undefined), fail);
  return decided ? next() : undefined;
}

/** Answers a denied request; the fields are already set. */
export function answer({ status, body, contentType }: Denial, response: NodeResponse): void {
  response.statusCode = status;
  response.setHeader("Content-Type", contentType);
  response.end(body);
}
