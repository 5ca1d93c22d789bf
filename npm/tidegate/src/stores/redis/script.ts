import algebra from "./algebra.lua";
import several from "./several.lua";
import usual from "./usual.lua";

/** The script, sent whole only where the server does not have it. Its parts are one chunk of Lua and share its locals. */
export const SCRIPT: string = usual + algebra + several;

/** Its digest, by which it is called; a test compares the two. */
export const SCRIPT_SHA1 = "7a26e8fe1ea88eb0012fab7de743f9a7e6ad36b0";
