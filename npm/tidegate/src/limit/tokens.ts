import { EXPECTS, MAX_COUNT } from "../engine/generated/bounds.ts";
import { type Check, numberFrom } from "./checks.ts";

/** A count of tokens. In its own file, which a page that checks none does not download. */
export const TOKENS: Check = numberFrom(EXPECTS.count, 0, MAX_COUNT);
