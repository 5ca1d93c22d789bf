/** Envoy's rate limit protocol over gRPC, decided by the policies in force. */
import type { AllDecision, Decision, LimitRequest } from "tidegate";
import { rateLimitHeaders } from "tidegate/http";
import { messagesOf } from "tidegate/cli";
import type { PolicyFile } from "./policies.ts";
import {
  type Descriptor,
  OK,
  OVER_LIMIT,
  RATE_LIMIT_SERVICE,
  type RateLimitRequest,
  type RateLimitResponse,
  type Status,
  UNITS,
} from "./rls.ts";
import { UsageError } from "tidegate/cli";

/** The largest number of a field of 32 bits. */
const MOST = 2 ** 32 - 1;
/** What rules read of a descriptor without an address; only rules that do not read it apply then. */
const NO_ADDRESS = "none";

/** The limits of a descriptor: those of the rules that match it, and of whose keys it has all. */
function limitsOf(file: PolicyFile, domain: string, { entries }: Descriptor): readonly LimitRequest<string>[] {
  const headers: Record<string, string> = domain === "" ? {} : { domain };
  const claims: Record<string, string> = {};
  const query = new URLSearchParams();
  const present = new Set(Object.keys(headers).map((name) => `header:${name}`));
  let address: string | undefined;
  for (const { key, value } of entries) {
    const [, source = "header", name = key] = /^(header|query|jwt):(.+)$/.exec(key) ?? [];
    if (key === "remote_address" || key === "ip:address") {
      address = value;
      present.add("ip:address");
      continue;
    }
    const lower = source === "header" ? name.toLowerCase() : name;
    present.add(`${source}:${lower}`);
    if (source === "jwt") claims[name] = value;
    else if (source === "query") query.set(name, value);
    else headers[lower] = value;
  }
  const selected = file.select({ address, headers, url: `/?${query}`, claims }, () => NO_ADDRESS);
  return selected.filter(({ name }) =>
    file.policies.limitKeysOf(name).every((key) => present.has(key.startsWith("header:") ? key.toLowerCase() : key)),
  );
}

/** The tokens that a descriptor takes, where the request states them. */
function hitsOf(request: RateLimitRequest, { hitsAddend }: Descriptor): number | undefined {
  if (hitsAddend !== undefined) return Number(hitsAddend.value ?? 0);
  return request.hitsAddend === undefined || request.hitsAddend === 0 ? undefined : request.hitsAddend;
}

/** The status of a descriptor's decisions; rules in shadow mode are none of the client's business. */
function statusOf(decisions: readonly Decision[]): Status {
  const [first, ...more] = decisions.filter(({ shadow }) => shadow === undefined);
  if (first === undefined) return { code: OK };
  const tighter = (a: Decision, b: Decision) => (a.ok === b.ok ? b.remaining < a.remaining : a.ok);
  const tightest = more.reduce((a, b) => (tighter(a, b) ? b : a), first);
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

/** Decides a request: the limits of all its descriptors, all or nothing. */
async function decide(file: PolicyFile, request: RateLimitRequest): Promise<RateLimitResponse> {
  const { domain = "", descriptors } = request;
  const limits = descriptors.map((descriptor) => {
    const count = hitsOf(request, descriptor);
    const found = limitsOf(file, domain, descriptor);
    return count === undefined ? found : found.map((limit) => ({ ...limit, count }));
  });
  const all = limits.flat();
  if (all.length === 0) {
    return { overallCode: OK, statuses: descriptors.map(() => ({ code: OK })), responseHeadersToAdd: [] };
  }
  const decided: AllDecision = await file.limiter.limitAll(all);
  const rest = [...decided.decisions];
  const statuses = limits.map(({ length }) => statusOf(rest.splice(0, length)));
  return {
    overallCode: decided.ok ? OK : OVER_LIMIT,
    statuses,
    responseHeadersToAdd: Object.entries(rateLimitHeaders(decided)).map(([key, value]) => ({ key, value })),
  };
}

/** A server that listens. */
export interface GrpcServer {
  readonly port: number;
  /** Stops accepting, and waits for the calls under way at most so many ms. */
  close(within: number): Promise<void>;
}

/** Listens. Throws a {@link UsageError} where `@grpc/grpc-js` is not installed, or the address cannot be used. */
export async function serveGrpc(file: PolicyFile, host: string, port: number): Promise<GrpcServer> {
  const grpc = await import("@grpc/grpc-js").catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new UsageError("--grpc-port needs the package @grpc/grpc-js: npm install @grpc/grpc-js");
  });
  const server = new grpc.Server();
  server.addService(RATE_LIMIT_SERVICE, {
    ShouldRateLimit: (
      call: { readonly request: RateLimitRequest },
      callback: (error: object | null, response?: RateLimitResponse) => void,
    ) => {
      decide(file, call.request).then(
        (response) => callback(null, response),
        (error: unknown) => callback({ code: grpc.status.INVALID_ARGUMENT, details: messagesOf(error) }),
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
  return {
    port: bound,
    close: async (within) => {
      const timer = setTimeout(() => server.forceShutdown(), within);
      await new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
      clearTimeout(timer);
    },
  };
}
