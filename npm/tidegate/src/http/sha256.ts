import { sha256 as hash } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";

/** SHA-256 as 64 hexadecimal digits, synchronously: the platform's own returns a promise. */
export const sha256 = (message: Uint8Array): string => bytesToHex(hash(message));
