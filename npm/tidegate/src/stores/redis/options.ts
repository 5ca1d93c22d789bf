import { InputError } from "../../limit/errors.ts";
import { checkLease, type LeaseOptions } from "../../limiter/lease/options.ts";

/** Settings of {@link redis}. */
export interface RedisOptions {
  /** What every key begins with; without braces. Default `"tidegate:"`. */
  prefix?: string | undefined;
  /**
   * In a cluster, keys of one tag live together, so that `limitAll` can take from all of them at once: say, the tenant
   * that the key begins with. Default: no tag, each key where its own hash puts it. The same name and key must always
   * give the same tag.
   */
  tag?: ((name: string, key: string | undefined) => string | undefined) | undefined;
  /**
   * How long a denial is answered again without a round trip, at most until its `retryAt`: a whole number of ms from 0
   * (always ask the server) to 60,000; default 1000. What another process gives back or resets is seen within it. The
   * latest 10,000 denied keys are remembered.
   */
  rememberDenials?: number | undefined;
  /** Takes tokens of hot keys ahead, to answer without a round trip: `true`, or the settings. Default: no. */
  lease?: boolean | LeaseOptions | undefined;
}

/** The settings with their defaults. */
export interface Options {
  readonly prefix: string;
  readonly tag: (name: string, key: string | undefined) => string | undefined;
  readonly rememberDenials: number;
}

/** ms. */
const LONGEST_MEMORY = 60_000;
const FIELDS = ["prefix", "tag", "rememberDenials", "lease"];

/** Checks the settings, or names the one that is wrong. */
export function readOptions(options: RedisOptions): Options {
  if (typeof options !== "object" || options === null) throw new InputError("options", "an object", options);
  for (const field of Object.keys(options)) {
    if (!FIELDS.includes(field)) {
      throw new InputError(field, `absent: the options of redis are ${FIELDS.join(", ")}`, Reflect.get(options, field));
    }
  }
  const { prefix = "tidegate:", tag = () => undefined, rememberDenials = 1000 } = options;
  if (typeof prefix !== "string" || /[{}]/.test(prefix) || /\p{Surrogate}/u.test(prefix)) {
    throw new InputError("prefix", "a string without braces", prefix);
  }
  if (typeof tag !== "function") throw new InputError("tag", "a function of a limit's name and key", tag);
  if (!Number.isInteger(rememberDenials) || rememberDenials < 0 || rememberDenials > LONGEST_MEMORY) {
    throw new InputError("rememberDenials", `a whole number of ms from 0 to ${LONGEST_MEMORY}`, rememberDenials);
  }
  checkLease(options.lease);
  return { prefix, tag, rememberDenials };
}
