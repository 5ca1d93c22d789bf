/** Envoy's rate limit protocol over gRPC, decided by the policies in force. */
import { type AllDecision, type Decision, InputError, isInputError, type LimitRequest } from "tidegate";
import { rateLimitHeaders } from "tidegate/http";
import { messagesOf, UsageError } from "tidegate/cli";
import { connectionsTo, endsWithin } from "./connections.ts";
import { type Log, logFailure } from "./log.ts";
import type { PolicyFile } from "./policies.ts";
import { RequestError } from "./problem.ts";
import {
  type Descriptor,
  OK,
  OVER_LIMIT,
  RATE_LIMIT_SERVICE,
  type RateLimitRequest,
  type RateLimitResponse,
  type Status,
  textOf,
  UNITS,
} from "./rls.ts";

/** The largest number of a field of 32 bits. */
const MOST = 2 ** 32 - 1;
/** The largest count of a limiter. */
const MOST_HITS = 2 ** 40;
/** Descriptors of a request, as many as limits of one over HTTP; Envoy sends one for each action of a route. */
const MOST_DESCRIPTORS = 100;
/** Calls of one connection at a time. By default there is no end to them, nor to what their messages take. Envoy opens another. */
const MOST_CALLS = 1000;
/** Connections of one address. Nothing else ends one that is idle, and Envoy needs one for each {@link MOST_CALLS}. */
const MOST_CONNECTIONS = 1000;
/** What rules read of a descriptor without an address; only rules that do not read it apply then. */
const NO_ADDRESS = "none";

/** The limits of a descriptor: those of the rules that match it, and of whose keys it has all. */
function limitsOf(file: PolicyFile, domain: string, { entries }: Descriptor): readonly LimitRequest<string>[] {
  const headers: Record<string, string> = domain === "" ? {} : { domain };
  const claims: Record<string, string> = {};
  const query = new URLSearchParams();
  const present = new Set(Object.keys(headers).map((name) => `header:${name}`));
  let address: string | undefined;
  let addressField: string | undefined;
  for (const { key = "", value: bytes } of entries) {
    const value = bytes === undefined ? "" : textOf(bytes);
    const [, source = "header", name = key] = /^(header|query|jwt):(.+)$/.exec(key) ?? [];
    if (key === "remote_address" || key === "ip:address") {
      address = value;
      addressField = key;
      present.add("ip:address");
      continue;
    }
    const lower = source === "header" ? name.toLowerCase() : name;
    present.add(`${source}:${lower}`);
    if (source === "jwt") claims[name] = value;
    else if (source === "query") query.set(name, value);
    else headers[lower] = value;
  }
  const selected = file.select({ address, headers, url: `/?${query}`, claims }, () => NO_ADDRESS, addressField);
  return selected.filter(({ name }) =>
    file.policies.limitKeysOf(name).every((key) => present.has(key.startsWith("header:") ? key.toLowerCase() : key)),
  );
}

/** The tokens that a descriptor takes or gives back, if the request states them. */
function hitsOf(request: RateLimitRequest, { hitsAddend }: Descriptor): number | undefined {
  if (hitsAddend === undefined) return request.hitsAddend === 0 ? undefined : request.hitsAddend;
  const hits = Number(hitsAddend.value ?? 0);
  if (hits <= MOST_HITS) return hits;
  throw new InputError("hits_addend", `a number of tokens from 0 to ${MOST_HITS}`, hits);
}

/** Denying comes before granting, then the longer wait, of grants the smaller remainder, of equal ones the later reset. */
function tighter(a: Decision, b: Decision): boolean {
  if (a.ok !== b.ok) return b.ok;
  if (!a.ok) return (a.retryAt ?? Infinity) > (b.retryAt ?? Infinity);
  return a.remaining === b.remaining ? a.resetAt > b.resetAt : a.remaining < b.remaining;
}

/** The status of a descriptor's decisions; rules in shadow mode are none of the client's business. */
function statusOf(decisions: readonly Decision[]): Status {
  const [first, ...more] = decisions.filter(({ shadow }) => shadow === undefined);
  if (first === undefined) return { code: OK };
  const tightest = more.reduce((a, b) => (tighter(b, a) ? b : a), first);
  const { ok, policy, remaining, retryAfter, resetAt, now } = tightest;
  const unit = UNITS[policy.period];
  const ms = Math.max(retryAfter ?? resetAt - now, 0);
  return {
    code: ok ? OK : OVER_LIMIT,
    // The protocol has whole requests in one of its units.
    currentLimit:
      unit === undefined || !Number.isInteger(policy.rate) || policy.rate > MOST
        ? undefined
        : { requestsPerUnit: policy.rate, unit, name: policy.name },
    limitRemaining: Math.min(remaining, MOST),
    durationUntilReset: { seconds: Math.floor(ms / 1000), nanos: Math.round((ms % 1000) * 1e6) },
  };
}

/** Decides a request: the limits of all its descriptors, all or nothing. Then negative hits are given back. */
async function decide(file: PolicyFile, request: RateLimitRequest): Promise<RateLimitResponse> {
  const { domain = "", descriptors } = request;
  const sent = descriptors.length;
  if (sent > MOST_DESCRIPTORS)
    throw new InputError("descriptors", `at most ${MOST_DESCRIPTORS} in one request`, sent, `${sent} of them`);
  // All are checked before the first takes tokens.
  const calls = descriptors.map((descriptor) => {
    const count = hitsOf(request, descriptor);
    const found = limitsOf(file, domain, descriptor);
    const limits = count === undefined ? found : found.map((limit) => ({ ...limit, count }));
    return { limits, gives: descriptor.isNegativeHits === true };
  });
  const taken = calls.flatMap(({ limits, gives }) => (gives ? [] : limits));
  const decided: AllDecision | undefined = taken.length === 0 ? undefined : await file.limiter.limitAll(taken);
  const rest = [...(decided?.decisions ?? [])];
  const decisions = calls.map(({ limits, gives }) =>
    gives
      ? Promise.all(limits.map(async ({ name, reserve: _, ...options }) => file.limiter.give(name, options)))
      : rest.splice(0, limits.length),
  );
  return {
    overallCode: decided?.ok === false ? OVER_LIMIT : OK,
    statuses: (await Promise.all(decisions)).map(statusOf),
    responseHeadersToAdd:
      decided === undefined ? [] : Object.entries(rateLimitHeaders(decided)).map(([key, value]) => ({ key, value })),
  };
}

/** The name of the status of a request that could not be decided. */
function failed(error: unknown, log: Log): "INVALID_ARGUMENT" | "INTERNAL" {
  if (error instanceof RequestError || isInputError(error)) return "INVALID_ARGUMENT";
  logFailure(log, "ShouldRateLimit", error);
  return "INTERNAL";
}

export interface GrpcServer {
  readonly port: number;
  /** Stops accepting, and waits for the calls under way at most this many ms. `false`: some were cut off. */
  close(within: number): Promise<boolean>;
}

/** Listens; a message has at most `bodyLimit` bytes. Throws a {@link UsageError} if `@grpc/grpc-js` is not installed, or the address cannot be used. */
export async function serveGrpc(
  file: PolicyFile,
  { host, bodyLimit }: { readonly host: string; readonly bodyLimit: number },
  port: number,
  log: Log,
): Promise<GrpcServer> {
  const grpc = await import("@grpc/grpc-js").catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new UsageError("--grpc-port needs the package @grpc/grpc-js: npm install @grpc/grpc-js");
  });
  const server = new grpc.Server({
    "grpc.max_receive_message_length": bodyLimit,
    "grpc.max_concurrent_streams": MOST_CALLS,
  });
  server.addService(RATE_LIMIT_SERVICE, {
    ShouldRateLimit: (
      call: { readonly request: RateLimitRequest },
      callback: (error: object | null, response?: RateLimitResponse) => void,
    ) => {
      decide(file, call.request).then(
        (response) => callback(null, response),
        (error: unknown) => callback({ code: grpc.status[failed(error, log)], details: messagesOf(error) }),
      );
    },
  });
  const address = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(address, grpc.ServerCredentials.createInsecure(), (error, found) => {
      if (error === null) resolve(found);
      else reject(new UsageError(`--grpc-port ${port} cannot be used: ${error.message}`));
    });
  });
  const connections = connectionsTo(bound, MOST_CONNECTIONS);
  return {
    port: bound,
    close: (within) => {
      const ended = new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
      return endsWithin(within, ended, () => {
        server.forceShutdown();
        // It waits until clients have closed their ends, which one whose machine is gone never does.
        for (const socket of connections) socket.destroy();
      });
    },
  };
}
