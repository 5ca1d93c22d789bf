/** What the command line sets. */
import type { OnStoreError } from "tidegate";
import type { ClientIpOptions } from "tidegate/http";

/** Whose headers state the client and the original request. */
export type Proxies = ClientIpOptions & { readonly trust: number | readonly string[] };

/** The settings of the service, checked. */
export interface Settings {
  readonly policies: string;
  /** The store's URL. */
  readonly store: string;
  readonly migrate: boolean;
  readonly host: string;
  readonly port: number;
  readonly onStoreError: OnStoreError;
  /** How long a decision waits for the store, ms; default 250. */
  readonly timeout: number | undefined;
  readonly adminToken: string | undefined;
  /** Whether to mount the console, which requires the token. */
  readonly console: boolean;
  /** Bytes. */
  readonly bodyLimit: number;
  readonly headerLimit: number;
  /** How long requests may take at the end, ms. */
  readonly shutdownTimeout: number;
  /** The port of Envoy's rate limit protocol; without one it is not served. */
  readonly grpcPort: number | undefined;
  readonly proxies: Proxies | undefined;
  readonly logRequests: boolean;
  readonly version: string;
}
