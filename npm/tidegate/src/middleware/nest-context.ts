/** Finds the request and the response in Nest's contexts, such as HTTP, GraphQL and WebSockets. */
import type { ExecutionContext } from "@nestjs/common";
import type { HeaderTarget } from "../http/fields.ts";
import { InputError } from "../limit/errors.ts";
import type { Incoming } from "./client-key.ts";
import type { NodeExchange, NodeResponse } from "./node-response.ts";
import type { Denial } from "./options.ts";
import type { MaybePromise } from "../limit/maybe-promise.ts";

type ExceptionClass = new (body: string | Record<string, unknown>, status: number) => Error;

/** The parts of one request of Nest. */
export interface Exchanged extends Omit<NodeExchange<unknown>, "attach" | "refuse" | "request"> {
  readonly request: object;
  /** The exception of a denial, of the class that this context's filter answers without a line in the log. */
  exception(denial: Denial, HttpException: ExceptionClass): MaybePromise<Error>;
}

/** What is read of a request of Express or Fastify. */
interface PlatformRequest extends Incoming {
  readonly raw?: Incoming & object;
  readonly ip?: string;
  /** Fastify: an array if the application trusts proxies. */
  readonly ips?: unknown;
  /** Express. */
  readonly app?: { get?(name: string): unknown };
  readonly res?: PlatformResponse;
}

/** What Nest passes as `req` for a subscription: the context of graphql-ws, with the request that opened the socket. */
interface Subscribed extends PlatformRequest {
  readonly extra?: { readonly request?: PlatformRequest };
}

/** What is read of a response of Express or a reply of Fastify. */
interface PlatformResponse extends NodeResponse {
  readonly raw?: NodeResponse;
  header?(name: string, value: string): unknown;
  /** Express. */
  json?: ((body: unknown) => unknown) | undefined;
}

/** Where the request is in this context. */
export function exchanged(context: ExecutionContext): Exchanged {
  const type: string = context.getType();
  if (type === "http") {
    const http = context.switchToHttp();
    const request = http.getRequest<PlatformRequest>();
    return overHttp(request, http.getResponse<PlatformResponse>(), request.raw ?? request, type);
  }
  if (type === "graphql") {
    const [, , shared, info] = context.getArgs<[unknown, unknown, unknown, object?]>();
    const { req, request, res, reply } = Object(shared) as Record<string, unknown>;
    const given = (req ?? request ?? (reply as { request?: unknown } | undefined)?.request) as Subscribed | undefined;
    const found = given?.extra?.request ?? given;
    if (found === undefined) {
      const rule = "the request: GraphQL's `context: ({ req, res }) => ({ req, res })`";
      throw new InputError("context.req", rule, undefined);
    }
    // Each resolver counts: one document may call a mutation many times.
    const response = (res ?? reply ?? found.res) as PlatformResponse | undefined;
    // A subscription of Mercurius has a `reply` that is only `{ request }`.
    return overHttp(found, typeof response?.getHeader === "function" ? response : undefined, info, type);
  }
  // Nest makes a context for each message, which all its guards get.
  if (type === "ws") return overWebSocket(context.switchToWs().getClient<Client>(), context);
  const rule = `one of an HTTP, GraphQL or WebSocket handler: a handler of the type ${type} has no request; use @SkipRateLimit()`;
  throw new InputError("context", rule, type);
}

function overHttp(
  request: PlatformRequest,
  response: PlatformResponse | undefined,
  once: object | undefined,
  type: string,
): Exchanged {
  const { headers, socket, url } = request.raw ?? request;
  const trust = request.app?.get?.("trust proxy") ?? false;
  const trusts = request.ips !== undefined && (request.raw === undefined ? trust !== false && trust !== 0 : true);
  const incoming = { headers, socket, url, trusted: trusts ? request.ip : undefined, trustsAll: trust === true };
  if (response === undefined) return { request, incoming, once, response, exception: inGraphql };
  const target: HeaderTarget = {
    getHeader: (name) => response.getHeader(name),
    setHeader: (name, value) =>
      typeof response.setHeader === "function" ? response.setHeader(name, value) : response.header?.(name, value),
  };
  const typed = (denial: Denial, HttpException: ExceptionClass): Error => {
    if (type === "graphql") return inGraphql(denial, HttpException);
    const body = bodyOf(denial);
    // A text becomes Nest's own JSON.
    if (typeof body === "string") return exception(denial, HttpException);
    const { json } = response;
    if (json === undefined) target.setHeader("Content-Type", denial.contentType);
    else {
      // Express: Nest 11 replaces any type but application/json, and logs a warning, before it calls `json`.
      response.json = (sent) => {
        if (sent === body) response.setHeader("Content-Type", denial.contentType);
        return json.call(response, sent);
      };
    }
    return new HttpException(body, denial.status);
  };
  return { request, incoming, once, response: response.raw ?? response, target, exception: typed };
}

/** The object, or a string that is not JSON. */
const bodyOf = ({ contentType, body }: Denial): string | Record<string, unknown> =>
  contentType.includes("json") ? (JSON.parse(body) as Record<string, unknown>) : body;

const exception = (denial: Denial, HttpException: ExceptionClass): Error =>
  new HttpException(bodyOf(denial), denial.status);

function inGraphql({ problem, status }: Denial, HttpException: ExceptionClass): Error {
  const code = status === 503 ? "SERVICE_UNAVAILABLE" : status === 400 ? "BAD_REQUEST" : "TOO_MANY_REQUESTS";
  const error = new HttpException({ ...problem, message: problem.detail }, status);
  return Object.assign(error, { extensions: { code, ...problem } });
}

/** A client of socket.io, or of ws. */
interface Client {
  readonly handshake?: { readonly address: string; readonly headers: object; readonly url?: string };
  readonly _socket?: { readonly remoteAddress?: string };
}

function overWebSocket(client: Client, once: object): Exchanged {
  const { handshake, _socket: socket } = client;
  const incoming = handshake ?? { socket };
  return {
    request: client,
    incoming,
    once,
    response: undefined,
    exception: async (denial, HttpException) => {
      // An application without gateways may lack the package: within `try`, bundlers do not require it.
      try {
        const { WsException } = await import("@nestjs/websockets");
        return new WsException(bodyOf(denial));
      } catch {
        return exception(denial, HttpException);
      }
    },
  };
}
