/** The policies in force: read from a file, and read again while the service runs. */
import { readFileSync, statSync } from "node:fs";
import { type Config, isInputError, type Limiter, type LimitOptions, type LimitRequest } from "tidegate";
import { addressKey } from "tidegate/http";
import { type DecisionEvent, observe } from "tidegate/observe";
import { definePolicies, type Policies, PolicyError, policyTarget } from "tidegate/policies";
import type { Store } from "tidegate/store";
import type { z } from "zod";
import type { MakeConsole, Mounted } from "./console.ts";
import type { Log } from "./log.ts";
import { messagesOf } from "tidegate/cli";
import { RequestError } from "./problem.ts";
import type { NamedLimit, RequestParts, Target } from "./schemas.ts";
import type { Settings } from "./settings.ts";

/** What rules read of a request, besides headers and URL. */
interface Facts {
  readonly claims?: object | undefined;
}

/** A limit of the policies by its name, and a key. */
export type KnownLimit = LimitRequest<string> & { readonly config: Config };

const OF_NAME = "Use one of these names, or add the rule to the policies.";
const OF_KEY =
  "Send one value as a string, several as an array with null for an absent one, and no `key` if the rule has none.";

/** How often the file is compared, ms. */
const INTERVAL = 1000;

/** What differs when the file has changed, is another one, or cannot be looked at: then reading it has the reason. */
function versionOf(path: string): string {
  try {
    const { ino, mtimeNs, size } = statSync(path, { bigint: true });
    return `${ino} ${mtimeNs} ${size}`;
  } catch (error) {
    return messagesOf(error);
  }
}

interface PolicySettings extends Pick<Settings, "onStoreError" | "timeout"> {
  readonly store: Store;
  readonly log: Log;
  readonly makeConsole: MakeConsole | undefined;
  readonly observer: (event: DecisionEvent) => void;
  /** Why the store's client has no connection, if that is so. */
  readonly connectionError: () => unknown;
  /** Called with each reload, and whether the new policies are in force. */
  readonly reloaded: (ok: boolean) => void;
}

/** The mistakes of a document as sentences; `undefined` for an error that is none of a document. */
export const mistakesIn = (error: unknown): readonly string[] | undefined =>
  error instanceof PolicyError ? error.problems.map(({ message }) => message) : undefined;

/** The policies of a file, with a limiter that reports its decisions. */
export class PolicyFile {
  readonly path: string;
  readonly policies: Policies<Facts, Store>;
  readonly console: Mounted | undefined;
  /** The policies' limiter, or the console's, which counts; observed. */
  readonly limiter: Limiter<string, Store>;
  readonly #settings: PolicySettings;
  /** The version of the file that was read last, even if it had mistakes. */
  #seen: string;
  /** Why the last read failed, if it did, such as for want of file handles. */
  #unread: string | undefined;

  /** Reads the file. Throws if it cannot be read, and a `PolicyError` if it has mistakes. */
  constructor(path: string, settings: PolicySettings) {
    const { store, onStoreError, timeout, log, observer, makeConsole, connectionError } = settings;
    this.path = path;
    this.#settings = settings;
    this.#seen = versionOf(path);
    this.policies = definePolicies<Facts, Store>(readFileSync(path, "utf8"), {
      store,
      onStoreError,
      timeout,
      claims: ({ claims }) => claims,
      log: {
        error: (message, cause) => {
          const reason = connectionError();
          const connection = reason === undefined ? {} : { connection: messagesOf(reason) };
          log.error("store failed", { message, cause: messagesOf(cause), ...connection });
        },
        info: (message) => log.info("store answers", { message }),
      },
    });
    this.console = makeConsole?.(this.policies);
    this.limiter = observe(this.console?.limits ?? this.policies.limiter, observer);
  }

  /** Reads the file again. With a mistake in it, or unread, the old policies stay in force, and the reason is logged. */
  reload(reason: "file changed" | "SIGHUP"): void {
    const { log, reloaded } = this.#settings;
    let ok = true;
    // Before the file is read: a change meanwhile is another version.
    this.#seen = versionOf(this.path);
    const unread = this.#unread;
    this.#unread = undefined;
    try {
      this.policies.reload(readFileSync(this.path, "utf8"));
      log.info("policies reloaded", { reason, file: this.path, rules: this.policies.names });
    } catch (error) {
      ok = false;
      const mistakes = mistakesIn(error);
      if (mistakes === undefined) this.#unread = messagesOf(error);
      // Already logged: the file is read again and again until it is readable.
      if (mistakes === undefined && this.#unread === unread && reason === "file changed") return;
      log.error("policies not reloaded", {
        reason,
        file: this.path,
        mistakes: mistakes ?? [this.#unread],
        message: "the old policies stay in force",
      });
    }
    reloaded(ok);
  }

  /**
   * Reloads when the file changes, even if it is replaced or is a link that is (Kubernetes), and again until it could be
   * read. Returns what ends it.
   */
  watch(): () => void {
    const timer = setInterval(() => {
      if (this.#unread !== undefined || versionOf(this.path) !== this.#seen) this.reload("file changed");
    }, INTERVAL);
    return () => clearInterval(timer);
  }

  /** The key and the config of a limit by its name. `at` is the path of its body, `ofKey` the remedy for a wrong key. */
  targetOf({ name, key, tier }: z.infer<typeof Target>, at = "", ofKey: string = OF_KEY): KnownLimit {
    try {
      return policyTarget(this.policies, { name, key, tier });
    } catch (error) {
      if (!isInputError(error)) throw error;
      const { field, rule, value } = error;
      throw new RequestError({ field: at + field, rule, value, remedy: field === "name" ? OF_NAME : ofKey });
    }
  }

  /**
   * The limits of a request whose parts are in a body. `absent` returns the client if they have no address; `field` is the
   * address's name in that body.
   */
  select(
    { address, headers = {}, url, claims }: z.infer<typeof RequestParts>,
    absent?: () => string,
    field = "request.address",
  ): readonly LimitRequest<string>[] {
    const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    const key = (): string => {
      const found = address === undefined ? undefined : addressKey(address);
      if (found !== undefined) return found;
      if (address === undefined && absent !== undefined) return absent();
      throw new RequestError({
        field,
        rule: "an IP address, because a rule reads ip:address",
        value: address,
        remedy: "Send the client's address, without its port.",
      });
    };
    // Claims are at hand, so the selection is not a promise.
    return this.policies.select({ claims }, { headers: lower, url }, key) as readonly LimitRequest<string>[];
  }

  /** The options of a call on a limit by its name. `at` is the path of the body. */
  callOf(body: z.infer<typeof NamedLimit>, at = ""): LimitOptions {
    const { count = 1, reserve = false } = body;
    const { key, config } = this.targetOf(body, at);
    return key === undefined ? { config, count, reserve } : { key, config, count, reserve };
  }
}
