/** The messages of Envoy's rate limit protocol that the service reads and writes, with the field numbers of its specification. */
import { isUtf8 } from "node:buffer";
import protobuf from "protobufjs/light.js";

const field = (type: string, id: number) => ({ type, id });
const repeated = (type: string, id: number) => ({ rule: "repeated", type, id });

const root = protobuf.Root.fromJSON({
  nested: {
    // A client's header, which Envoy copies as it is: a string must be UTF-8.
    Entry: { fields: { key: field("string", 1), value: field("bytes", 2) } },
    UInt64Value: { fields: { value: field("uint64", 1) } },
    Descriptor: {
      fields: {
        entries: repeated("Entry", 1),
        hitsAddend: field("UInt64Value", 3),
        isNegativeHits: field("bool", 4),
      },
    },
    Request: {
      fields: { domain: field("string", 1), descriptors: repeated("Descriptor", 2), hitsAddend: field("uint32", 3) },
    },
    Limit: { fields: { requestsPerUnit: field("uint32", 1), unit: field("uint32", 2), name: field("string", 3) } },
    Duration: { fields: { seconds: field("int64", 1), nanos: field("int32", 2) } },
    Status: {
      fields: {
        code: field("uint32", 1),
        currentLimit: field("Limit", 2),
        limitRemaining: field("uint32", 3),
        durationUntilReset: field("Duration", 4),
      },
    },
    Header: { fields: { key: field("string", 1), value: field("string", 2) } },
    Response: {
      fields: {
        overallCode: field("uint32", 1),
        statuses: repeated("Status", 2),
        responseHeadersToAdd: repeated("Header", 3),
      },
    },
  },
});

/** The codes of a response. */
export const OK = 1;
export const OVER_LIMIT = 2;

/** The units of a limit, by their ms. */
export const UNITS: Readonly<Record<number, number>> = { 1000: 1, 60000: 2, 3600000: 3, 86400000: 4 };

/** The text of an entry; of other bytes than UTF-8 what Node.js makes of them in a header over HTTP. */
export function textOf(value: Buffer): string {
  return value.toString(isUtf8(value) ? "utf8" : "latin1");
}

export interface Descriptor {
  /** A text that is empty is absent. */
  readonly entries: readonly { readonly key?: string; readonly value?: Buffer }[];
  /** In place of that of the request; as text, because it has 64 bits. */
  readonly hitsAddend?: { readonly value?: string } | undefined;
  /** The hits are given back. */
  readonly isNegativeHits?: boolean | undefined;
}

export interface RateLimitRequest {
  readonly domain?: string;
  readonly descriptors: readonly Descriptor[];
  /** 0, the default of the protocol, is one that is absent. */
  readonly hitsAddend?: number;
}

export interface Status {
  readonly code: number;
  readonly currentLimit?:
    | { readonly requestsPerUnit: number; readonly unit: number; readonly name: string }
    | undefined;
  readonly limitRemaining?: number;
  readonly durationUntilReset?: { readonly seconds: number; readonly nanos: number };
}

export interface RateLimitResponse {
  readonly overallCode: number;
  readonly statuses: readonly Status[];
  readonly responseHeadersToAdd: readonly { readonly key: string; readonly value: string }[];
}

const codec = <T extends object>(name: string) => {
  const type = root.lookupType(name);
  return {
    encode: (message: T): Buffer => Buffer.from(type.encode(type.fromObject(message)).finish()),
    decode: (bytes: Buffer): T => type.toObject(type.decode(bytes), { longs: String, arrays: true }) as T,
  };
};

const requests = codec<RateLimitRequest>("Request");
const responses = codec<RateLimitResponse>("Response");

/** The service as @grpc/grpc-js takes it. */
export const RATE_LIMIT_SERVICE = {
  ShouldRateLimit: {
    path: "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
    requestStream: false,
    responseStream: false,
    requestSerialize: requests.encode,
    requestDeserialize: requests.decode,
    responseSerialize: responses.encode,
    responseDeserialize: responses.decode,
  },
} as const;
