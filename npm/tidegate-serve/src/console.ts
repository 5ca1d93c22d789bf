/** The console, mounted: the package tidegate-console, if it is installed. */
import { createHash, timingSafeEqual } from "node:crypto";
import { UsageError } from "tidegate/cli";
import { keysOfPolicies, type Policies } from "tidegate/policies";
import type { Store } from "tidegate/store";
import type { Console } from "tidegate-console";

/** The limiter with counts, and the page. */
export type Mounted = Console<string, Store>;

export type MakeConsole = <R>(policies: Policies<R, Store>) => Mounted;

const hash = (text: string): Buffer => createHash("sha256").update(text).digest();

/** Whether the header has the token: as a bearer's, or as the password of a browser. */
function isAuthorized(header: string | null, token: string): boolean {
  const [, scheme = "", credentials = ""] = /^(bearer|basic) +(\S+)$/i.exec(header ?? "") ?? [];
  const isBasic = scheme.toLowerCase() === "basic";
  const decoded = isBasic ? Buffer.from(credentials, "base64").toString() : credentials;
  const given = isBasic ? decoded.slice(decoded.indexOf(":") + 1) : decoded;
  // Hashes have equal lengths, so the comparison takes the same time for all.
  return timingSafeEqual(hash(given), hash(token));
}

/** What makes the console of policies. Throws a {@link UsageError} if the package is not installed. */
export async function consoleOf(token: string): Promise<MakeConsole> {
  let loaded: typeof import("tidegate-console");
  try {
    loaded = await import("tidegate-console");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new UsageError(
      "--console is the package tidegate-console, which is not installed: npm install tidegate-console",
    );
  }
  const { createConsole } = loaded;
  const signIn = (): Response =>
    new Response("The password is the administrator's token.\n", {
      status: 401,
      headers: { "WWW-Authenticate": 'Basic realm="tidegate", charset="UTF-8"' },
    });
  return (policies) =>
    createConsole(policies.limiter, {
      authorize: ({ headers }) => isAuthorized(headers.get("authorization"), token) || signIn(),
      keys: keysOfPolicies(policies),
      shadow: policies,
    });
}
